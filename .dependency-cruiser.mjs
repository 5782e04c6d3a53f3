// The direction in which code may depend, one rule per sentence; a rule's name is the sentence. `npm run lint` checks them,
// test/structure/rules.spec.ts shows that each one bites. From the outside in:
// apps → infra, model → domains, pivots → runtime → kernel → contracts.

const notTests = '\\.(spec|test)\\.tsx?$'
const inside = '^libs/(contracts|kernel|runtime|domains|pivots)/'
/** A package, wherever npm has put it. */
const packages = (...names) => `(^|/)node_modules/(${names.join('|')})(/|$)`
/** One of Node's own modules, with or without `node:`. */
const builtins = (...names) => `^(node:)?(${names.join('|')})(/|$)`
const any = (...patterns) => patterns.join('|')

const files = ['fs', 'path']
const processes = ['child_process', 'cluster', 'worker_threads']
const network = ['net', 'http', 'https', 'http2', 'tls', 'dgram', 'dns']

/** @param {string} name the rule as a sentence @param {object} from @param {object} to @param {string} comment why */
const never = (name, from, to, comment) => ({
  name: name.replaceAll(' ', '-'),
  severity: 'error',
  comment,
  from: { pathNot: notTests, ...from },
  to,
})

const direction = [
  never(
    'contracts import zod alone',
    { path: '^libs/contracts/' },
    { pathNot: any('^libs/contracts/', packages('zod')) },
    'The dictionary is read by every side, the web page included.',
  ),
  never(
    'kernel imports contracts alone',
    { path: '^libs/kernel/' },
    { pathNot: any('^libs/(kernel|contracts)/', builtins('crypto')) },
    'The trusted base is plain TypeScript. Hashing is the one thing it takes from Node.',
  ),
  never(
    'runtime imports kernel and contracts alone',
    { path: '^libs/runtime/' },
    { path: '^(libs|apps)/', pathNot: '^libs/(runtime|kernel|contracts)/' },
    'Domains, pivots and adapters reach it by plugins and ports.',
  ),
  never(
    'pivots import the plugin API alone',
    { path: '^libs/pivots/' },
    { path: '^(libs|apps)/', pathNot: '^libs/(pivots|runtime|kernel|contracts)/' },
    'A pivot is a plugin like any other.',
  ),
  never(
    'pivots never import each other',
    { path: '^libs/pivots/([^/]+)/' },
    { path: '^libs/pivots/[^/]+/', pathNot: '^libs/pivots/$1/' },
    'They meet on the bus.',
  ),
  never('domains import no pivot', { path: '^libs/domains/' }, { path: '^libs/pivots/' }, 'Rules do not know who proposes.'),
  never(
    'domains import no adapter',
    { path: '^libs/domains/' },
    { path: '^libs/(infra|model)/' },
    'They declare ports; infra implements them.',
  ),
  never(
    'sibling domains do not import each other',
    { path: '^libs/domains/([^/]+)/' },
    { path: '^libs/domains/[^/]+/', pathNot: '^libs/domains/$1/' },
    'They speak by events and ids.',
  ),
  never('model imports no adapter', { path: '^libs/model/' }, { path: '^libs/(infra|domains|pivots)/' }, 'What it needs is handed to it.'),
  never(
    'infra imports no model client',
    { path: '^libs/infra/' },
    { path: '^libs/(model|pivots)/' },
    'The two meet in the composition root.',
  ),
  never('nobody imports apps', { path: '^(libs|prisma)/' }, { path: '^apps/' }, 'Apps compose; nothing composes apps.'),
  never(
    'web imports contracts alone',
    { path: '^apps/web/' },
    { path: '^(libs|apps|prisma)/', pathNot: '^(libs/contracts|apps/web)/' },
    'The page knows the dictionary and the API.',
  ),
  never(
    'servers do not import the web page',
    { path: '^apps/(bff|worker)/' },
    { path: '^apps/web/' },
    'The page is served as built files.',
  ),
  never(
    'no cycles',
    {},
    { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    'Two files that need each other are one idea, or three.',
  ),
  never(
    'model alone imports openai',
    { pathNot: any(notTests, '^libs/model/') },
    { path: packages('openai') },
    'There is one exit to a model.',
  ),
  never(
    'the composition alone knows the embeddings endpoint',
    { pathNot: any(notTests, '^test/', '^apps/bff/composition/compose-embedder\\.ts$') },
    { path: '^libs/model/openai-embedder\\.ts$' },
    'It hands it to the effect broker, which records each request; nobody else can send one.',
  ),
]

const purity = [
  never('nothing inside reads files', { path: inside }, { path: builtins(...files) }, 'Files are read by adapters.'),
  never(
    'nothing inside opens a connection',
    { path: inside },
    { path: any(builtins(...network), packages('undici', 'ioredis', 'pg')) },
    'The network is reached by adapters.',
  ),
  never('nothing inside starts a process', { path: inside }, { path: builtins(...processes) }, 'Processes are started by adapters.'),
  never(
    'nothing inside knows the framework',
    { path: any(inside, '^libs/model/') },
    { path: packages('@nestjs', 'express', 'rxjs', 'reflect-metadata') },
    'NestJS lives in apps.',
  ),
  never(
    'nothing inside knows the database client',
    { path: inside },
    { path: any('^prisma/', packages('@prisma', 'prisma', '@electric-sql')) },
    'Domains declare repository ports.',
  ),
]

// Where anything can leave or start at all (K3): each file by name or folder; a type alone reaches nothing.
const notTypes = { dependencyTypesNot: ['type-only'] }
const outside = any(notTests, '^(test|scripts|apps/web)/')
const reaching = any(
  '^libs/(model|infra/(executors|redis))/',
  '^libs/infra/pglite/(database-front|front-connection)\\.ts$',
  '^libs/infra/prisma/(database|row-types|turn-socket)\\.ts$',
  '^libs/infra/config/config\\.ts$',
  '^apps/bff/(http/(server|problem|host-check)|admin-socket/(call|serve)|composition/open-database)\\.ts$',
)
const starting = any(
  '^libs/infra/executors/(mcp|sandbox)/',
  '^libs/infra/pglite/(data-folder|worker-thread|database-worker)\\.ts$',
  // Only looks where a package lies.
  '^apps/bff/openapi/docs-page\\.ts$',
)
const exits = [
  never(
    'few adapters reach the network',
    { pathNot: any(outside, reaching) },
    { path: any(builtins(...network), packages('undici', 'ioredis', 'bullmq', 'pg', 'ws')), ...notTypes },
    'The model gateway, the executors, the databases, the server itself. Who else wants something outside asks the effect broker.',
  ),
  never(
    'few adapters start a process or a thread',
    { pathNot: any(outside, starting) },
    { path: builtins(...processes, 'module', 'vm', 'inspector', 'wasi', 'repl'), ...notTypes },
    'The sandbox, MCP servers that the operator listed, the light tier’s database.',
  ),
  never(
    'executors alone speak to tool servers and run scripts',
    { pathNot: any(outside, '^libs/infra/executors/') },
    { path: packages('@modelcontextprotocol', 'quickjs-emscripten-core', '@jitl') },
    'A tool server is a target of effects.',
  ),
  never(
    'the composition alone knows executors',
    { pathNot: any(outside, '^(libs/infra/executors|apps/bff/composition)/') },
    { path: '^libs/infra/executors/' },
    'It hands them to the effect broker; nobody else can call one.',
  ),
]

// What the Kernel does not do, one rule for each.
const kernel = { path: '^libs/kernel/' }
const negativeSpace = [
  never('kernel reads no files', kernel, { path: builtins(...files) }, 'Content arrives by reference in commands.'),
  never(
    'kernel reads no environment',
    kernel,
    { path: any(builtins('process', 'os'), '^libs/infra/config') },
    'Settings arrive in commands. (The global `process` is refused by oxlint.)',
  ),
  never(
    'kernel calls no provider',
    kernel,
    { path: any(builtins(...network), packages('openai', 'undici'), '^libs/model/') },
    'It asks for a model request; the gateway makes it.',
  ),
  never(
    'kernel builds no prompt',
    kernel,
    { path: any('^libs/runtime/prompt', packages('gpt-tokenizer')) },
    'Prompts are assembled in runtime.',
  ),
  never(
    'kernel selects no context',
    kernel,
    { path: any('^libs/runtime/projection', '^libs/domains/(memory|worlds|mirror-tree)') },
    'Projection is a proposal; the Kernel sees references.',
  ),
  never('kernel spawns no process', kernel, { path: builtins(...processes) }, 'Effects are executed outside.'),
  never(
    'kernel parses no MCP',
    kernel,
    { path: any(packages('@modelcontextprotocol'), '^libs/infra/mcp') },
    'A tool server is a target of effects.',
  ),
  never(
    'kernel draws no page',
    kernel,
    { path: any(packages('react', 'react-dom', '@xyflow'), '^apps/web/') },
    'No user interface in the trusted base.',
  ),
  never(
    'kernel trains and activates nothing',
    kernel,
    { path: any('^libs/(pivots|domains/governance)', '^libs/runtime/(profile|plugins)', packages('@huggingface', 'onnxruntime-node')) },
    'A bundle is activated by a person, through governance.',
  ),
]

const hygiene = [
  never('every import resolves', { pathNot: '^$' }, { couldNotResolve: true }, 'A name that resolves to nothing fails at start.'),
  never(
    'shipped code imports no development package',
    { path: '^(apps|libs)/' },
    { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    'A production install has none.',
  ),
  never(
    'shipped code imports no test',
    { path: '^(apps|libs)/' },
    { path: any('^test/', notTests) },
    'Tests look at code, not the other way round.',
  ),
]

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [...direction, ...purity, ...exits, ...negativeSpace, ...hygiene],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|prisma/generated)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['node', 'import', 'require', 'default', 'types'],
      extensions: ['.ts', '.tsx', '.mjs', '.js', '.json'],
    },
    skipAnalysisNotInRules: true,
  },
}
