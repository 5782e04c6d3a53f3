import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import { MarkdownText } from './markdown.tsx'

const render = (text: string, base: number | null = null) => renderToStaticMarkup(createElement(MarkdownText, { text, base }))

describe('MarkdownText', () => {
  it('shows raw HTML as letters', () => {
    const html = render('<script>alert(1)</script> and <img src=x onerror=alert(1)>')
    expect(html).not.toMatch(/<script|<img/)
    expect(html).toContain('&lt;script&gt;')
  })

  it('makes a link of a picture and loads nothing', () => {
    const html = render('![a chart](https://example.org/x.png)')
    expect(html).not.toContain('<img')
    expect(html).toContain('href="https://example.org/x.png"')
    expect(html).toContain('noopener')
  })

  it('links only what leaves the page openly', () => {
    for (const address of ['javascript:alert(1)', '/v1/session', '//evil.example', 'data:text/html,x', '#signin=x']) {
      expect(render(`[go](${address})`)).not.toContain('<a')
    }
    expect(render('[go](https://example.org)')).toContain('target="_blank"')
  })

  it('tells of each piece which letters of the message it shows', () => {
    const text = 'Plain **bold 粗** and `code`.\n\n> 引文 *斜*\n\n```js\nlet x = 1\n```'
    const base = 100
    const html = render(text, base)
    const spans = [...html.matchAll(/data-from="(\d+)" data-to="(\d+)">([^<]*)</g)]
    expect(spans.length).toBeGreaterThan(5)
    for (const [, from, to, letters] of spans) {
      const source = text.slice(Number(from) - base, Number(to) - base)
      // Where the rendered letters are not the source's own, the span covers them at least.
      expect(source).toContain(letters)
    }
    expect(
      spans.some(([, from, to, letters]) => letters === 'bold 粗' && text.slice(Number(from) - base, Number(to) - base) === 'bold 粗'),
    ).toBe(true)
  })
})
