import { existsSync } from 'node:fs'
import { mkdir, open, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { SignedAnchor } from '#contracts'
import type { AnchorFile } from '#domains/record/anchor-ports'
import { fileLines } from './file-lines.ts'

const TAIL_BYTES = 64 * 1024

/**
 * `LINGTAI_HOME/anchors.jsonl`: every anchor, one JSON line each, outside the database (decision 18). Processes that share a home may both
 * append the same anchor; readers take equal lines for one.
 */
export class HomeAnchorFile implements AnchorFile {
  readonly path: string

  constructor(home: string) {
    this.path = join(home, 'anchors.jsonl')
  }

  async *read(): AsyncIterable<SignedAnchor> {
    for await (const line of fileLines(this.path)) {
      const anchor = parseLine(line)
      if (anchor) yield anchor
    }
  }

  async last(): Promise<SignedAnchor | null> {
    const lines = (await this.#tail()).split('\n').toReversed()
    for (const line of lines) {
      const anchor = parseLine(line)
      if (anchor) return anchor
    }
    return null
  }

  async append(anchors: readonly SignedAnchor[]): Promise<void> {
    if (anchors.length === 0) return
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 })
    const isTorn = !/(^|\n)$/.test(await this.#tail())
    const file = await open(this.path, 'a', 0o600)
    try {
      // What a crash cut off becomes a line of its own that nobody can read; the anchor itself follows anew.
      await file.appendFile(`${isTorn ? '\n' : ''}${anchors.map((anchor) => `${JSON.stringify(anchor)}\n`).join('')}`)
      await file.sync()
    } finally {
      await file.close()
    }
  }

  async setAside({ from, epoch }: Parameters<AnchorFile['setAside']>[0]): Promise<string> {
    const aside = join(dirname(this.path), `anchors.epoch-${epoch}.jsonl`)
    const rest = `${this.path}.unfinished`
    // Aside first, then away: a crash in between leaves them in both.
    const [moved, kept] = [await open(aside, 'a', 0o600), await open(rest, 'w', 0o600)]
    try {
      for await (const anchor of this.read()) await (anchor.seq < from ? kept : moved).appendFile(`${JSON.stringify(anchor)}\n`)
      await moved.sync()
      await kept.sync()
    } finally {
      await moved.close()
      await kept.close()
    }
    await rename(rest, this.path)
    return aside
  }

  /** The file's last bytes, dozens of lines of them. */
  async #tail(): Promise<string> {
    if (!existsSync(this.path)) return ''
    const file = await open(this.path, 'r')
    try {
      const { size } = await file.stat()
      const tail = Buffer.alloc(Math.min(size, TAIL_BYTES))
      await file.read(tail, 0, tail.byteLength, size - tail.byteLength)
      return tail.toString('utf8')
    } finally {
      await file.close()
    }
  }
}

function parseLine(line: string): SignedAnchor | null {
  try {
    return SignedAnchor.parse(JSON.parse(line))
  } catch {
    return null // what a crash cut off; a line that is missing for another reason is missed by its number
  }
}
