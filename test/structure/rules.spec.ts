import { cruise, type ICruiseResult } from 'dependency-cruiser'
import extractDepcruiseConfig from 'dependency-cruiser/config-utl/extract-depcruise-config'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFixture, repository } from './fixture.ts'

/** One forbidden import for every rule of .dependency-cruiser.mjs: the file that makes it, and what it imports. */
const breaches: Record<string, [from: string, imports: string]> = {
  'contracts-import-zod-alone': ['libs/contracts/breach.ts', 'pino'],
  'kernel-imports-contracts-alone': ['libs/kernel/breach.ts', '../domains/bonds/index.ts'],
  'runtime-imports-kernel-and-contracts-alone': ['libs/runtime/breach.ts', '../model/index.ts'],
  'pivots-import-the-plugin-API-alone': ['libs/pivots/taiyi/breach.ts', '../../domains/bonds/index.ts'],
  'pivots-never-import-each-other': ['libs/pivots/taiyi/breach-each-other.ts', '../siming/index.ts'],
  'domains-import-no-pivot': ['libs/domains/bonds/breach-pivot.ts', '../../pivots/siming/index.ts'],
  'domains-import-no-adapter': ['libs/domains/bonds/breach-adapter.ts', '../../infra/config/index.ts'],
  'sibling-domains-do-not-import-each-other': ['libs/domains/bonds/breach-sibling.ts', '../memory/index.ts'],
  'model-imports-no-adapter': ['libs/model/breach.ts', '../infra/config/index.ts'],
  'infra-imports-no-model-client': ['libs/infra/config/breach.ts', '../../model/index.ts'],
  'nobody-imports-apps': ['libs/infra/config/breach-apps.ts', '../../../apps/bff/index.ts'],
  'web-imports-contracts-alone': ['apps/web/src/breach.ts', '../../../libs/kernel/index.ts'],
  'servers-do-not-import-the-web-page': ['apps/bff/breach-web.ts', '../web/src/index.ts'],
  'no-cycles': ['libs/runtime/cycle-a.ts', './cycle-b.ts'],
  'model-alone-imports-openai': ['libs/infra/breach-openai.ts', 'openai'],
  'the-composition-alone-knows-the-embeddings-endpoint': [
    'apps/bff/composition/breach-embeddings.ts',
    '../../../libs/model/openai-embedder.ts',
  ],
  'nothing-inside-reads-files': ['libs/domains/bonds/breach-files.ts', 'node:fs/promises'],
  'nothing-inside-opens-a-connection': ['libs/runtime/breach-net.ts', 'node:http'],
  'nothing-inside-starts-a-process': ['libs/pivots/taiyi/breach-process.ts', 'child_process'],
  'nothing-inside-knows-the-framework': ['libs/domains/bonds/breach-framework.ts', '@nestjs/common'],
  'nothing-inside-knows-the-database-client': ['libs/domains/bonds/breach-database.ts', '@prisma/client'],
  'few-adapters-reach-the-network': ['libs/infra/breach-network.ts', 'node:https'],
  'few-adapters-start-a-process-or-a-thread': ['apps/bff/breach-process.ts', 'node:child_process'],
  'executors-alone-speak-to-tool-servers-and-run-scripts': ['libs/infra/breach-mcp.ts', '@modelcontextprotocol/sdk'],
  'the-composition-alone-knows-executors': ['apps/bff/breach-executor.ts', '../../libs/infra/executors/mcp/index.ts'],
  'kernel-reads-no-files': ['libs/kernel/breach-files.ts', 'node:fs'],
  'kernel-reads-no-environment': ['libs/kernel/breach-environment.ts', 'node:process'],
  'kernel-calls-no-provider': ['libs/kernel/breach-provider.ts', 'openai'],
  'kernel-builds-no-prompt': ['libs/kernel/breach-prompt.ts', '../runtime/prompt/index.ts'],
  'kernel-selects-no-context': ['libs/kernel/breach-context.ts', '../runtime/projection/index.ts'],
  'kernel-spawns-no-process': ['libs/kernel/breach-process.ts', 'node:child_process'],
  'kernel-parses-no-MCP': ['libs/kernel/breach-mcp.ts', '@modelcontextprotocol/sdk'],
  'kernel-draws-no-page': ['libs/kernel/breach-page.ts', 'react'],
  'kernel-trains-and-activates-nothing': ['libs/kernel/breach-activation.ts', '../domains/governance/index.ts'],
  'every-import-resolves': ['libs/infra/breach-unresolved.ts', './nowhere.ts'],
  'shipped-code-imports-no-development-package': ['apps/bff/breach-development.ts', 'fast-check'],
  'shipped-code-imports-no-test': ['libs/infra/breach-test.ts', '../../test/support/index.ts'],
}

/** What is allowed stays allowed: each of these files may import all that stands beside it. */
const allowed: Record<string, string[]> = {
  'libs/contracts/index.ts': ['zod'],
  'libs/kernel/index.ts': ['../contracts/index.ts', 'node:crypto'],
  'libs/kernel/index.spec.ts': ['fast-check', 'node:fs'],
  'libs/runtime/index.ts': ['../kernel/index.ts', '../contracts/index.ts'],
  'libs/runtime/prompt/index.ts': ['../index.ts'],
  'libs/runtime/projection/index.ts': ['../index.ts'],
  'libs/pivots/siming/index.ts': ['../../runtime/index.ts', '../../contracts/index.ts'],
  'libs/domains/memory/index.ts': ['../../kernel/index.ts', './rules/deep.ts'],
  'libs/domains/memory/rules/deep.ts': ['../../../runtime/index.ts'],
  'libs/domains/bonds/index.ts': ['../../kernel/index.ts'],
  'libs/domains/governance/index.ts': [],
  'libs/model/index.ts': ['openai', '../kernel/index.ts'],
  'libs/infra/executors/http/index.ts': ['node:https', 'node:net', 'node:dns/promises'],
  'libs/infra/executors/mcp/index.ts': ['node:child_process', 'node:worker_threads', '@modelcontextprotocol/sdk'],
  'libs/infra/redis/index.ts': ['ioredis'],
  'libs/infra/pglite/worker-thread.ts': ['node:worker_threads'],
  'libs/infra/prisma/turn-socket.ts': ['node:net'],
  'apps/bff/http/server.ts': ['node:http'],
  'apps/bff/composition/index.ts': ['../../../libs/infra/executors/http/index.ts'],
  'libs/model/openai-embedder.ts': ['openai'],
  'apps/bff/composition/compose-embedder.ts': ['../../../libs/model/openai-embedder.ts'],
  'libs/infra/config/index.ts': ['node:fs', '../../domains/memory/index.ts', '@prisma/client'],
  'apps/web/src/index.ts': ['../../../libs/contracts/index.ts', 'react'],
  'apps/bff/index.ts': [
    '@nestjs/common',
    '../../libs/infra/config/index.ts',
    '../../libs/model/index.ts',
    '../../libs/domains/memory/index.ts',
  ],
  'apps/worker/index.ts': ['../bff/index.ts'],
  'test/support/index.ts': ['../../apps/bff/index.ts', 'fast-check'],
}

const packages = ['zod', 'openai', 'pino', 'react', '@nestjs/common', '@prisma/client', '@modelcontextprotocol/sdk', 'ioredis']

describe('direction rules', () => {
  let fixture: ReturnType<typeof makeFixture>
  let result: ICruiseResult
  let names: string[]

  beforeAll(async () => {
    const imports = (targets: string[]) =>
      targets.map((target, index) => `import * as name${index} from '${target}'\nexport { name${index} }\n`).join('') || 'export {}\n'
    const files: Record<string, string> = {}
    for (const [path, targets] of Object.entries(allowed)) files[path] = imports(targets)
    for (const [from, target] of Object.values(breaches)) files[from] = imports([target])
    files['libs/runtime/cycle-b.ts'] = imports(['./cycle-a.ts'])
    fixture = makeFixture(files, { packages, developmentPackages: ['fast-check'] })

    const { forbidden = [], options = {} } = await extractDepcruiseConfig(join(repository, '.dependency-cruiser.mjs'))
    names = forbidden.flatMap((rule) => rule.name ?? [])
    const cruised = await cruise(
      ['apps', 'libs', 'test'],
      { ...options, baseDir: fixture.folder, validate: true, ruleSet: { forbidden } },
      options.enhancedResolveOptions,
    )
    if (typeof cruised.output === 'string') throw new Error('the cruise answered with text')
    result = cruised.output
  })
  afterAll(() => fixture.remove())

  it('every rule has its breach here', () => {
    expect(Object.keys(breaches).sort()).toEqual([...names].sort())
  })

  it.each(Object.entries(breaches))('%s', (rule, [from]) => {
    expect(result.summary.violations.filter((violation) => violation.from === from).map((violation) => violation.rule.name)).toContain(rule)
  })

  it('what is allowed breaks none', () => {
    const bad = new Set([...Object.values(breaches).map(([from]) => from), 'libs/runtime/cycle-b.ts'])
    expect(result.summary.violations.filter((violation) => !bad.has(violation.from))).toEqual([])
    for (const path of Object.keys(allowed)) expect(result.modules.map((module) => module.source)).toContain(path)
  })
})
