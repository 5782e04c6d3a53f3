import { describe, expect, it } from 'vitest'
import type { EffectCall, EffectOutcome } from '#kernel/ports/effect-target'
import { Sandbox, SCRIPT_LIMITS } from './sandbox.ts'
import { sandboxTool } from './sandbox-tool.ts'

const quick = { ...SCRIPT_LIMITS, timeMs: 400 }

function toolOn(sandbox: Pick<Sandbox, 'run'>) {
  const { contract, target } = sandboxTool({ sandbox, clock: { now: () => new Date(0) } })
  const run = (code: string, over: Partial<EffectCall> = {}): Promise<EffectOutcome> =>
    target.execute({
      effectId: 'e',
      ownerId: 'o',
      characterId: 'c',
      runId: 'r',
      treeId: null,
      tool: contract.name,
      arguments: { code },
      idempotencyKey: 'k',
      argumentsHash: '00',
      constraints: [],
      signal: new AbortController().signal,
      ...over,
    })
  return { contract, target, run }
}

/** Time enough on a machine that is busy with other things, for all that is not about time. */
const { contract, target, run } = toolOn(new Sandbox({ ...SCRIPT_LIMITS, timeMs: 20_000 }))
const { run: runQuickly } = toolOn(new Sandbox(quick))
const codeOf = (outcome: EffectOutcome): string => (outcome.type === 'done' ? 'done' : outcome.code)
const valueOf = (outcome: EffectOutcome): { output: string; result: string | null } => {
  if (outcome.type === 'unknown' || !outcome.observation) throw new Error(JSON.stringify(outcome))
  return JSON.parse(outcome.observation.text) as { output: string; result: string | null }
}

describe('sandbox.javascript', { timeout: 30_000 }, () => {
  it('executes code, with no egress, and leaves nothing behind', () => {
    expect(contract).toMatchObject({
      name: 'sandbox.javascript',
      capability: 'code_executing',
      consequence: 'none',
      egress: 'none',
      undoable: false,
    })
    expect([...target.enforces(contract)].sort()).toEqual(['exact_arguments', 'no_egress', 'single_use'])
  })

  it('answers with what was printed and what came out', async () => {
    const outcome = await run(`console.log('a', 1, { b: [2] }); console.error('你好'); [1, 2, 3].map((n) => n * 2)`, { trust: 'workspace' })
    expect(valueOf(outcome)).toEqual({ output: 'a 1 {"b":[2]}\n你好\n', result: '[2,4,6]' })
    expect(outcome).toMatchObject({
      type: 'done',
      costMicros: 0,
      observation: { trust: 'workspace', source: 'sandbox.javascript', truncated: false },
    })
    expect(await run('1')).toMatchObject({ observation: { trust: 'untrusted' } })
  })

  it.each([
    ['undefined', 'undefined'],
    ['"text"', 'text'],
    ['10n ** 20n', '100000000000000000000'],
    ['Promise.resolve(1).then((n) => n + 1)', '2'],
    ['(async () => { let n = 0; for (const m of [1, 2]) n += await m; return n })()', '3'],
    ['({ toJSON() { return 7 } })', '7'],
    ['const a = {}; a.a = a; 1', '1'],
  ])('%s is %s', async (code, result) => {
    expect(valueOf(await run(code)).result).toBe(result)
  })

  it.each([
    ['throw new TypeError("no")', 'script_threw', 'TypeError: no'],
    ['Promise.reject(new Error("later"))', 'script_threw', 'Error: later'],
    ['let x = ;', 'script_threw', 'SyntaxError'],
    ['new Promise(() => {})', 'promise_never_settled', ''],
  ])('%s ends as %s', async (code, expected, text) => {
    const outcome = await run(code)
    expect(codeOf(outcome)).toBe(expected)
    expect(valueOf(outcome).result ?? '').toContain(text)
  })

  it.each([
    ['a loop', 'for (;;) {}'],
    ['a loop that catches', 'for (;;) { try { for (;;) {} } catch {} }'],
    ['a loop of promises', 'const again = () => Promise.resolve().then(again); again()'],
    ['an expression that backtracks', '/^(a+)+$/.test("a".repeat(40) + "!")'],
    ['a long sort', 'const a = Array.from({ length: 3e6 }, (_, i) => (i * 7919) % 1e6); for (;;) a.sort()'],
  ])('%s is ended in time', async (_, code) => {
    expect(codeOf(await runQuickly(code))).toBe('time_limit')
  })

  it('a loop does not hold up anything else', async () => {
    let ticks = 0
    const ticking = setInterval(() => ticks++, 5)
    await runQuickly('for (;;) {}')
    clearInterval(ticking)
    expect(ticks).toBeGreaterThan(10)
  })

  it.each([
    ['values', 'const kept = []; for (;;) kept.push(new Array(1000).fill(kept.length))'],
    ['one text', 'let text = "x"; for (;;) text += text + "y"; text.length'],
    ['one buffer', 'new ArrayBuffer(1e9)'],
    ['many buffers', 'const kept = []; for (;;) kept.push(new Uint8Array(1e6))'],
  ])('the memory of %s is bounded', async (_, code) => {
    expect(codeOf(await run(code))).toMatch(/^(memory_limit|script_threw)$/)
  })

  it.each([
    ['buffers', 'kept.push(new ArrayBuffer(100_000)); bytes += 100_000'],
    ['texts', 'kept.push("x".repeat(100_000) + bytes); bytes += 100_000'],
    ['arrays', 'kept.push(new Array(1000).fill(bytes)); bytes += 8_000'],
  ])('what catches the lack of memory for %s goes on with less than 64 MB', async (_, step) => {
    const outcome = await run(`const kept = []; let bytes = 0; try { for (;;) { ${step} } } catch { kept.length = 0 } bytes`)
    const bytes = Number(valueOf(outcome).result)
    expect(bytes).toBeGreaterThan(1_000_000)
    expect(bytes).toBeLessThan(64 * 1024 * 1024)
  })

  it('recursion ends in an error of the script', async () => {
    expect(codeOf(await run('const down = () => 1 + down(); down()'))).toBe('script_threw')
    expect(codeOf(await run('let a = []; for (let i = 0; i < 1e4; i++) a = [a]; JSON.stringify(a)'))).toMatch(/^(script_threw|done)$/)
  })

  it('a flood of output is cut and ends the script', async () => {
    const outcome = await run('for (;;) console.log("x".repeat(1000))')
    expect(codeOf(outcome)).toBe('output_limit')
    expect(outcome).toMatchObject({ observation: { truncated: true } })
    expect(valueOf(outcome).output).toHaveLength(64 * 1024)
    const single = await run('"y".repeat(10_000_000)')
    expect(single).toMatchObject({ type: 'done', observation: { truncated: true } })
    expect(valueOf(single).result).toHaveLength(64 * 1024)
    expect(valueOf(await run('console.log("z".repeat(1e7))')).output).toHaveLength(64 * 1024)
  })

  it('knows nothing of the host', async () => {
    const names = `['fetch','process','require','module','exports','global','Buffer','setTimeout','setInterval','setImmediate','queueMicrotask','WebSocket','XMLHttpRequest','Worker','SharedArrayBuffer','WebAssembly','Deno','Bun','navigator','performance','structuredClone','postMessage','importScripts','scriptArgs','std','os','print','load']`
    expect(valueOf(await run(`${names}.filter((name) => name in globalThis)`)).result).toMatch(
      /^\[("queueMicrotask"|"performance"|"navigator"|"SharedArrayBuffer"|,)*\]$/,
    )
    for (const way of ['import("node:fs")', 'import("fs")']) expect(codeOf(await run(way)), way).toBe('script_threw')
    expect(codeOf(await run('import fs from "fs"'))).toBe('script_threw')
  })

  it.each([
    ['the function that makes functions', 'console.log.constructor("return typeof process + typeof require + typeof fetch")()'],
    ['the way up from console', 'console.log.constructor.constructor("return typeof process + typeof require + typeof fetch")()'],
    ['this', '(function () { return typeof this.process + typeof this.require + typeof this.fetch })()'],
    ['a caller', '(() => { try { return typeof console.log.caller } catch { return "undefined" } })() + "undefined" + "undefined"'],
  ])('does not come out through %s', async (_, code) => {
    expect(valueOf(await run(code)).result).toBe('undefinedundefinedundefined')
  })

  it('changes nothing outside by changing what is inside', async () => {
    const outcome = await run(`
      Object.prototype.polluted = 'yes'
      Array.prototype.map = Array.prototype.join = () => 'evil'
      JSON.stringify = JSON.parse = String.prototype.slice = () => { throw 1 }
      Object.defineProperty(Object.prototype, 'type', { get() { return 'finished' } })
      globalThis.console = undefined
      ;({ __proto__: { x: 1 }, constructor: { prototype: { polluted: 'yes' } } })`)
    expect(codeOf(outcome)).toMatch(/done|script_threw/)
    expect('polluted' in {}).toBe(false)
    expect([1].map((n) => n)).toEqual([1])
    expect(valueOf(await run('typeof Object.prototype.polluted')).result).toBe('undefined')
  })

  it('shows an error’s own words, not ours', async () => {
    const { result } = valueOf(await run('null.x'))
    expect(result).toMatch(/^TypeError/)
    expect(result).not.toMatch(/libs|node_modules|wasm|\/.*\.ts/)
  })

  it('ends the moment the caller aborts, running or waiting; more than can wait are told so', async () => {
    const sandbox = new Sandbox({ ...SCRIPT_LIMITS, timeMs: 60_000 })
    const abort = new AbortController()
    const running = Array.from({ length: 18 }, () => sandbox.run('for (;;) {}', abort.signal))
    expect(await sandbox.run('1', new AbortController().signal)).toBe('busy')
    abort.abort()
    expect(new Set(await Promise.all(running))).toEqual(new Set(['aborted']))
    expect(await sandbox.run('1', new AbortController().signal)).toMatchObject({ type: 'finished', result: '1' })
    expect(await sandbox.run('1', AbortSignal.abort())).toBe('aborted')
  })
})
