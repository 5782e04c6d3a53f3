import { fileURLToPath } from 'node:url'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { testIds } from '../../apps/web/src/test-ids.ts'
import { launchBrowser } from '../support/browser.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

/** The main job in a real browser, on the built page, the demo model and the light tier. Each step builds on the ones before. */
let browser: Browser
let system: TestSystem
let page: Page
const faults: string[] = []

vi.setConfig({ testTimeout: 120_000 })

beforeAll(async () => {
  browser = await launchBrowser()
  system = await startTestSystem({ http: { pageFolder: fileURLToPath(new URL('../../dist/web', import.meta.url)) } })
  const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 860 } })
  page = await context.newPage()
  page.setDefaultTimeout(20_000)
  page.on('pageerror', (error) => faults.push(error.message))
})
afterAll(async () => {
  await browser?.close()
  await system?.close()
})

const byId = (id: string): Locator => page.getByTestId(id)
const answers = (): Locator => page.locator(`[data-testid="${testIds.message}"][data-kind="candidate"]`)

async function say(text: string): Promise<void> {
  await byId(testIds.composer).fill(text)
  await byId(testIds.send).click()
}

/** A condition of the page that holds soon, on a machine that may be busy. */
const soon = <Value>(look: () => Promise<Value>) => expect.poll(look, { timeout: 20_000 })

/** Waits until nothing is being said. */
async function quiet(): Promise<void> {
  await byId(testIds.stop).waitFor({ state: 'detached' })
  await byId(testIds.liveMessage).waitFor({ state: 'detached' })
}

/** Says something and waits for the whole answer; on a busy machine it may be there before the page has drawn its making. */
async function sayAndHear(text: string): Promise<void> {
  const before = await answers().count()
  await say(text)
  await soon(() => answers().count()).toBeGreaterThan(before)
  await quiet()
}

async function act(message: Locator, id: string): Promise<void> {
  await message.hover()
  await message.getByTestId(id).click()
}

it('a one-time link signs in and leaves no secret in the address', async () => {
  await page.goto(system.baseUrl)
  await byId(testIds.signinHelp).waitFor()
  const secret = await system.system.identity.signin.mintLink(system.ownerId)
  await page.goto(`${system.baseUrl}/#signin=${secret}`)
  await byId(testIds.demoBanner).waitFor()
  expect(page.url()).not.toContain(secret)
  expect(await byId(testIds.demoBanner).innerText()).toMatch(/demo/i)
})

it('the demo character speaks, words arriving as they are made', async () => {
  await byId(testIds.characterItem).first().click()
  await byId(testIds.newConversation).first().click()
  await byId(testIds.conversation).waitFor()
  await answers().first().waitFor()
  await say('Good evening. What is this place?')
  await byId(testIds.liveMessage).waitFor()
  await quiet()
  expect(await answers().count()).toBe(2)
  expect((await answers().last().innerText()).length).toBeGreaterThan(20)
})

it('an answer can be stopped, wears its mark, and loses nothing on reload', async () => {
  await say('Tell me a long story about the lake, please, with every detail.')
  await byId(testIds.liveMessage).waitFor()
  await byId(testIds.stop).click()
  await quiet()
  await byId(testIds.partialMark).first().waitFor()
  const before = await answers().last().getByTestId(testIds.messageText).innerText()
  await page.reload()
  await byId(testIds.partialMark).first().waitFor()
  expect(await answers().last().getByTestId(testIds.messageText).innerText()).toBe(before)
})

it('regenerate adds a candidate beside the old one, and the arrows go back', async () => {
  await act(answers().last(), testIds.regenerate)
  await soon(() => answers().last().getByTestId(testIds.candidateCount).innerText()).toMatch(/2\s*\/\s*2/)
  await quiet()
  await act(answers().last(), testIds.candidatePrev)
  await soon(() => answers().last().getByTestId(testIds.candidateCount).innerText()).toMatch(/1\s*\/\s*2/)
  await act(answers().last(), testIds.candidateNext)
  await soon(() => answers().last().getByTestId(testIds.candidateCount).innerText()).toMatch(/2\s*\/\s*2/)
})

it('editing a question forks', async () => {
  const question = page.locator(`[data-testid="${testIds.message}"][data-kind="question"]`).last()
  await act(question, testIds.edit)
  await byId(testIds.editBox).fill('Tell me a short story about the lake.')
  await byId(testIds.editSubmit).click()
  await soon(() => page.locator(`[data-testid="${testIds.message}"][data-kind="question"]`).last().innerText()).toContain('short story')
  await answers().nth(1).waitFor()
  await quiet()
})

it('canonizing wears the seal and fills the inbox; confirming and undoing work', async () => {
  await sayAndHear('I love old maps and I am allergic to peanuts. Please remember that I like walking at dawn.')
  await act(answers().last(), testIds.canonize)
  const confirm = byId(testIds.dialogConfirm)
  if (await confirm.isVisible().catch(() => false)) await confirm.click()
  await byId(testIds.canonicalSeal).last().waitFor()
  await page.goto(`${system.baseUrl}/memory`)
  await byId(testIds.inboxItem).first().waitFor({ timeout: 30_000 })
  await byId(testIds.inboxItem).first().getByTestId(testIds.confirm).click()
  await soon(() => page.getByText('peanuts').count()).toBeGreaterThan(0)
})

it('in another conversation the character remembers, and the explanation shows it, rebuilt identically', async () => {
  await page.goto(system.baseUrl)
  await byId(testIds.characterItem).first().click()
  await byId(testIds.newConversation).first().click()
  await answers().first().waitFor()
  await sayAndHear('Do you remember what kind of maps I love?')
  await act(answers().last(), testIds.explain)
  await byId(testIds.explanation).waitFor()
  await byId(testIds.rebuilt).waitFor()
  expect(await byId(testIds.rebuilt).innerText()).toMatch(/identical/i)
  expect(await byId(testIds.explanation).innerText()).toContain('maps')
})

it('the map, the admin pages and the other language are there', async () => {
  await byId(testIds.drawerMap).first().click()
  await byId(testIds.mapRow).first().waitFor()
  await page.goto(`${system.baseUrl}/admin`)
  await byId(testIds.adminRun).first().waitFor()
  await byId(testIds.verify).click()
  await byId(testIds.verifyReport).waitFor({ timeout: 60_000 })
  await byId(testIds.languageSwitch).first().click()
  await soon(() => page.locator('html').getAttribute('lang')).toMatch(/^zh/)
})

it('nothing broke on the page meanwhile', () => {
  expect(faults).toEqual([])
})
