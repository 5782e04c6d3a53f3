/** A bar and what was measured against it, both as they are told to people. */
export type Bar = { name: string; bar: string; measured: string; held: boolean }

/** A benchmark: measures, writes its own figures, answers its bars. `say` tells how it goes. */
export type Bench = (options: { args: readonly string[]; say: (line: string) => void }) => Promise<Bar[]>
