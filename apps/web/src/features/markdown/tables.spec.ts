import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import { MarkdownText } from './markdown.tsx'
import { mayHaveTables } from './tables.ts'

const drawn = (text: string) => renderToStaticMarkup(createElement(MarkdownText, { text, base: null }))

describe('tables', () => {
  it('are drawn as tables, with nothing in them but text', () => {
    const html = drawn('| door | opens |\n| --- | :-: |\n| third | <b>dawn</b> |')
    expect(html).toMatch(/<table>.*<th>.*door.*<\/th>.*<td style="text-align:center">/s)
    expect(html).toContain('&lt;b&gt;')
    expect(html).not.toContain('<b>')
  })

  it('cannot be made to grow without bound', () => {
    const bomb = `${'|a'.repeat(3000)}\n${'|-'.repeat(3000)}\n${'|\n'.repeat(3000)}`
    expect(mayHaveTables(bomb)).toBe(false)
    expect(drawn(bomb)).not.toContain('<table>')
    expect(mayHaveTables('no pipe')).toBe(false)
    expect(mayHaveTables('| a |\n| - |\n| b |')).toBe(true)
  })
})
