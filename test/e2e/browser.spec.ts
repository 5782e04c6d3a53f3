import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser } from '#test/support/browser'

describe('the browser that the end-to-end tests use', () => {
  let browser: Browser
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(
      '<p style="font: 40px serif"><span id="han">灵台</span> <span id="none">\u{10fffd}\u{10fffd}</span></p><script>document.title = "ran"</script>',
    )
  })

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    server.close()
  })

  it('runs a page and has a Chinese font to draw with', async () => {
    const page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    expect(await page.title()).toBe('ran')
    const pictureOf = async (id: string) => (await page.locator(id).screenshot()).toString('base64')
    expect(await pictureOf('#han')).not.toBe(await pictureOf('#none'))
  })
})
