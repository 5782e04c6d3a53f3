import { inflateSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Report } from './card-error.ts'
import { plainPng, readPng, readTextChunk, textChunk, writePng } from './png.ts'
import { refusal } from './test-support.ts'

const png = plainPng('a')

/** The picture with some bytes changed. */
function damaged(change: (bytes: Buffer) => Uint8Array | void): Uint8Array {
  const copy = Buffer.from(png)
  return change(copy) ?? copy
}

describe('readPng', () => {
  it('is undone by writePng', () => {
    expect(Buffer.from(writePng(readPng(png))).equals(png)).toBe(true)
  })

  it('reads a view into a larger buffer', () => {
    const padded = Buffer.concat([Buffer.alloc(7), png, Buffer.alloc(7)])
    expect(readPng(padded.subarray(7, 7 + png.length)).map(({ type }) => type)).toEqual(['IHDR', 'IDAT', 'IEND'])
  })

  it.each<[string, Uint8Array, string]>([
    ['a broken signature', damaged((bytes) => void bytes.writeUInt8(0x0a, 4)), 'not_png'],
    ['a cut file', png.subarray(0, png.length - 5), 'png_truncated'],
    ['a file of the signature alone', png.subarray(0, 8), 'png_truncated'],
    ['a length past the file', damaged((bytes) => void bytes.writeUInt32BE(0x7fff_0000, 33)), 'png_truncated'],
    ['a length past what PNG allows', damaged((bytes) => void bytes.writeUInt32BE(0xffff_ffff, 33)), 'png_bad_chunk'],
    ['a nameless chunk', damaged((bytes) => void bytes.writeUInt8(0, 38)), 'png_bad_chunk'],
    ['a wrong checksum', damaged((bytes) => void bytes.writeUInt8(bytes.readUInt8(45) ^ 1, 45)), 'png_bad_crc'],
    ['no IHDR', writePng(readPng(png).slice(1)), 'png_bad_chunk'],
    ['two IHDRs', writePng([...readPng(png).slice(0, 1), ...readPng(png)]), 'png_bad_chunk'],
    [
      'chunks without end',
      writePng([...readPng(png).slice(0, 1), ...Array.from({ length: 30_000 }, () => textChunk('a', ''))]),
      'png_bad_chunk',
    ],
  ])('refuses %s', (_, bytes, code) => {
    expect(refusal(() => readPng(bytes)).code).toBe(code)
  })

  it('refuses or reads any damaged file, and never runs away', () => {
    fc.assert(
      fc.property(fc.nat({ max: png.length - 1 }), fc.integer({ min: 1, max: 255 }), (index, mask) => {
        const bytes = damaged((copy) => void copy.writeUInt8(copy.readUInt8(index) ^ mask, index))
        expect(refusal(() => readPng(bytes)).code).toMatch(/^(not_png|png_)/)
      }),
    )
  })

  it('reports bytes after the end', () => {
    const report = new Report()
    readPng(Buffer.concat([png, Buffer.from('more')]), report)
    expect(report.list()).toMatchObject([{ code: 'trailing_bytes' }])
  })
})

describe('text chunks', () => {
  it('hold a keyword and a value', () => {
    const found = readTextChunk(textChunk('Chara', 'abc='))
    expect(found?.keyword).toBe('chara')
    expect(Buffer.from(found?.value ?? []).toString()).toBe('abc=')
    expect(readTextChunk({ type: 'tEXt', data: Buffer.from('no end') })).toBeUndefined()
  })
})

describe('plainPng', () => {
  it('is a picture of 256 × 384 whose colour follows the name', () => {
    const [header, pixels] = readPng(plainPng('青禾'))
    expect(Buffer.from(header?.data ?? []).readUInt32BE(0)).toBe(256)
    expect(inflateSync(pixels?.data ?? new Uint8Array())).toHaveLength(384 * (1 + 256 * 3))
    expect(plainPng('青禾')).toEqual(plainPng('青禾'))
    expect(plainPng('青禾')).not.toEqual(plainPng('Qinghe'))
  })
})
