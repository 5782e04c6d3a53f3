import type { EffectTarget, ToolCatalogue, ToolContract } from '#kernel/ports/effect-target'
import type { BuiltinTool } from './builtin/builtin-tool.ts'

/**
 * Every tool of an owner, of whatever kind. What is built in is everybody's and keeps its name: a source that offers a tool of the same
 * name is not heard.
 */
export class JoinedCatalogue implements ToolCatalogue {
  readonly #builtin: ReadonlyMap<string, BuiltinTool>
  readonly #others: readonly ToolCatalogue[]

  constructor({ builtin, others }: { builtin: readonly BuiltinTool[]; others: readonly ToolCatalogue[] }) {
    this.#builtin = new Map(builtin.map((tool) => [tool.contract.name, tool]))
    this.#others = others
  }

  async list(ownerId: string): Promise<readonly ToolContract[]> {
    const contracts = new Map([...this.#builtin].map(([name, { contract }]) => [name, contract]))
    for (const other of this.#others) {
      for (const contract of await other.list(ownerId)) if (!contracts.has(contract.name)) contracts.set(contract.name, contract)
    }
    return [...contracts.values()].sort((left, right) => (left.name < right.name ? -1 : 1))
  }

  async find(ownerId: string, name: string): Promise<{ contract: ToolContract; target: EffectTarget } | null> {
    const builtin = this.#builtin.get(name)
    if (builtin) return builtin
    for (const other of this.#others) {
      const found = await other.find(ownerId, name)
      if (found) return found
    }
    return null
  }
}
