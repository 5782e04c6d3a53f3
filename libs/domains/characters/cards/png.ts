import { crc32, deflateSync } from 'node:zlib'
import { CardError } from './card-error.ts'
import type { Report } from './card-error.ts'
import { limits } from './limits.ts'

const signature = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
const longestChunk = 0x7fff_ffff

/** One chunk of a PNG file; `data` is a view on the file's own bytes. */
export interface PngChunk {
  type: string
  data: Uint8Array
}

/** Whether the bytes begin as a PNG does; a damaged signature still counts, so that it is called a broken PNG and not broken text. */
export const looksLikePng = (bytes: Uint8Array): boolean =>
  bytes[0] === 0x89 || (bytes[0] === 0x50 && bytes[1] === 0x4e && bytes[2] === 0x47)

/**
 * Cuts a PNG into its chunks and checks their frames: signature, lengths against what is there, names, checksums, IHDR first, IEND last.
 * The picture itself is not decoded, so a picture that would unpack to gigabytes costs nothing here.
 * Throws CardError: not_png, png_truncated, png_bad_chunk, png_bad_crc.
 */
export function readPng(bytes: Uint8Array, report?: Report): PngChunk[] {
  if (signature.some((byte, index) => bytes[index] !== byte)) throw new CardError('not_png', '', 'The PNG signature is missing or damaged')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const chunks: PngChunk[] = []
  let at = signature.length
  for (;;) {
    if (at + 12 > bytes.length) throw truncated(at)
    const length = view.getUint32(at)
    if (length > longestChunk)
      throw new CardError('png_bad_chunk', '', `The chunk at byte ${at} claims ${length} bytes, more than PNG allows`)
    const end = at + 12 + length
    if (end > bytes.length) throw truncated(at)
    const type = Buffer.from(bytes.subarray(at + 4, at + 8)).toString('latin1')
    if (!/^[A-Za-z]{4}$/.test(type)) throw new CardError('png_bad_chunk', '', `The chunk at byte ${at} has no valid name`)
    if (crc32(bytes.subarray(at + 4, end - 4)) !== view.getUint32(end - 4)) {
      throw new CardError('png_bad_crc', '', `The checksum of the ${type} chunk at byte ${at} does not fit`)
    }
    const isFirst = chunks.length === 0
    if (isFirst !== (type === 'IHDR') || (isFirst && length !== 13)) {
      throw new CardError('png_bad_chunk', '', 'A PNG starts with exactly one IHDR chunk of 13 bytes')
    }
    if (chunks.length === limits.pngChunks) throw new CardError('png_bad_chunk', '', `More than ${limits.pngChunks} chunks`)
    chunks.push({ type, data: bytes.subarray(at + 8, end - 4) })
    at = end
    if (type === 'IEND') break
  }
  if (at < bytes.length) report?.add('', 'trailing_bytes', `${bytes.length - at} bytes after the end of the picture were not read`)
  return chunks
}

const truncated = (at: number): CardError => new CardError('png_truncated', '', `The file ends inside the chunk at byte ${at}`)

/** The inverse of `readPng`. */
export function writePng(chunks: readonly PngChunk[]): Uint8Array {
  return Buffer.concat([signature, ...chunks.map(chunkBytes)])
}

function chunkBytes({ type, data }: PngChunk): Uint8Array {
  const bytes = Buffer.alloc(data.length + 12)
  bytes.writeUInt32BE(data.length, 0)
  bytes.write(type, 4, 'latin1')
  bytes.set(data, 8)
  bytes.writeUInt32BE(crc32(bytes.subarray(4, -4)), data.length + 8)
  return bytes
}

/** Keyword (lower case) and value of a tEXt chunk; undefined for any other chunk. */
export function readTextChunk({ type, data }: PngChunk): { keyword: string; value: Uint8Array } | undefined {
  if (type !== 'tEXt') return undefined
  const end = data.indexOf(0)
  if (end < 0) return undefined
  return { keyword: Buffer.from(data.subarray(0, end)).toString('latin1').toLowerCase(), value: data.subarray(end + 1) }
}

/** A tEXt chunk. `value` must be Latin-1 text without NUL (base64 is). */
export const textChunk = (keyword: string, value: string): PngChunk => ({
  type: 'tEXt',
  data: Buffer.from(`${keyword}\0${value}`, 'latin1'),
})

/** A quiet upright gradient, 256 × 384, for a character that has no picture; the colour follows the seed. */
export function plainPng(seed: string): Uint8Array {
  const [width, height] = [256, 384]
  const hue = crc32(seed) % 360
  const rows: Buffer[] = []
  for (let row = 0; row < height; row += 1) {
    const line = Buffer.alloc(1 + width * 3)
    const colour = rgb(hue, 0.75 - (0.45 * row) / height)
    for (let column = 0; column < width; column += 1) line.set(colour, 1 + column * 3)
    rows.push(line)
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  // 8 bits a sample, red-green-blue, and the only methods there are
  header.set([8, 2, 0, 0, 0], 8)
  return writePng([
    { type: 'IHDR', data: header },
    { type: 'IDAT', data: deflateSync(Buffer.concat(rows)) },
    { type: 'IEND', data: Buffer.alloc(0) },
  ])
}

/** Three bytes of a muted colour: hue in degrees, lightness 0–1, saturation 0.35. */
function rgb(hue: number, lightness: number): number[] {
  const spread = 0.35 * Math.min(lightness, 1 - lightness)
  return [0, 8, 4].map((offset) => {
    const step = (offset + hue / 30) % 12
    return Math.round(255 * (lightness - spread * Math.max(-1, Math.min(step - 3, 9 - step, 1))))
  })
}
