/**
 * PGlite's data folder on disk, with the fsync that PGlite leaves out (decision 3): without it a commit is acknowledged while it
 * lies in the operating system's cache alone.
 */
import { fsyncSync } from 'node:fs'
import type { PGlite } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'

type EmscriptenOptions = Parameters<NodeFS['init']>[1]

/** The part of Emscripten's NODEFS that is touched; PGlite ships no types for it. */
interface NodeFileSystem {
  stream_ops: { fsync?: (stream: { nfd: number }) => number }
  /** Turns Node's file errors into Emscripten's, so that Postgres sees an errno. */
  tryFSOperation<T>(operation: () => T): T
}

/**
 * A NodeFS whose fsync reaches the disk, from the first write of start-up and crash recovery on. `onFsync` is called after each.
 * A failing fsync comes back as an errno, on which Postgres stops rather than go on with doubtful data.
 */
export class DurableFolder extends NodeFS {
  readonly #onFsync: () => void

  constructor({ folder, onFsync }: { folder: string; onFsync: () => void }) {
    super(folder)
    this.#onFsync = onFsync
  }

  override async init(pg: PGlite, options: EmscriptenOptions): ReturnType<NodeFS['init']> {
    const { emscriptenOpts } = await super.init(pg, options)
    const addFsync = (module: { FS: unknown }): void => {
      const { NODEFS } = (module.FS as { filesystems: { NODEFS: NodeFileSystem } }).filesystems
      NODEFS.stream_ops.fsync = (stream) => {
        NODEFS.tryFSOperation(() => fsyncSync(stream.nfd))
        this.#onFsync()
        return 0
      }
    }
    return { emscriptenOpts: { ...emscriptenOpts, preRun: [...(emscriptenOpts.preRun ?? []), addFsync] } }
  }
}
