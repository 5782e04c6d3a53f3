import { fileURLToPath } from 'node:url'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { GrantView, PathView, TreeView } from '#contracts'
import { testIds } from '../../apps/web/src/test-ids.ts'
import { accessibilityFaults } from '../support/accessibility.ts'
import { launchBrowser } from '../support/browser.ts'
import { fakeContract, fakeTools, happens, seen } from '../support/fake-target.ts'
import type { FakeTool } from '../support/fake-target.ts'
import { answer, call } from '../support/story.ts'
import { calling, grant, treeWithTools } from '../support/tool-calls.ts'
import { startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

/** A character asks to act and the owner answers on the page. Each step builds on the ones before. */
const tools = fakeTools(
  fakeContract('look.up'),
  fakeContract('mail.send', { capability: 'irreversible_external', consequence: 'lasting', egress: 'declared' }),
)
let browser: Browser
let world: World
let page: Page
let tree: TreeView
const faults: string[] = []

vi.setConfig({ testTimeout: 120_000 })

beforeAll(async () => {
  browser = await launchBrowser()
  const pageFolder = fileURLToPath(new URL('../../dist/web', import.meta.url))
  world = await startWorld({ overrides: { tools: tools.catalogue }, http: { pageFolder } })
  const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 860 } })
  page = await context.newPage()
  page.setDefaultTimeout(20_000)
  page.on('pageerror', (error) => faults.push(error.message))
  tree = await treeWithTools(world.system, [...tools.tools.keys()])
  const secret = await world.system.system.identity.signin.mintLink(world.system.ownerId)
  await page.goto(`${world.system.baseUrl}/#signin=${secret}`)
  await byId(testIds.navigation).waitFor()
})
afterAll(async () => {
  await browser?.close()
  await world?.close()
})

const byId = (id: string): Locator => page.getByTestId(id)
const answers = (): Locator => page.locator(`[data-testid="${testIds.message}"][data-kind="candidate"]`)
const question = (): Locator => byId(testIds.question)
const soon = <Value>(look: () => Promise<Value>) => expect.poll(look, { timeout: 20_000 })

function tool(name: string): FakeTool {
  const found = tools.tools.get(name)
  if (!found) throw new Error(`no tool ${name}`)
  return found
}

/** Letters that would turn round what is shown after them. */
const letter = { to: 'mira@example.org', amount: 12, text: 'Dear Mira,\nthe third door. <b>now</b> \u202egro.live' }
const sends = (text: string) => calling([{ name: 'mail_send', arguments: text }], 'I will write to her. ')

async function say(text: string): Promise<void> {
  await byId(testIds.composer).fill(text)
  await byId(testIds.send).click()
}

async function quiet(): Promise<void> {
  await byId(testIds.stop).waitFor({ state: 'detached' })
  await byId(testIds.liveMessage).waitFor({ state: 'detached' })
}

it('a proposed send stands in the answer’s place as a question with its exact arguments, and survives a reload', async () => {
  tool('mail.send').contract.parameters = { type: 'object' }
  world.upstream.script(sends(JSON.stringify(letter)))
  await page.goto(`${world.system.baseUrl}/t/${tree.id}`)
  await say('Write to Mira.')
  await question().waitFor()
  for (const visit of ['first', 'reloaded']) {
    if (visit === 'reloaded') await page.reload()
    await question().waitFor()
    expect(await byId(testIds.actionArguments).innerText()).toBe(
      '{\n  "amount": 12,\n  "text": "Dear Mira,\\nthe third door. <b>now</b> U+202Egro.live",\n  "to": "mira@example.org"\n}',
    )
    expect(await question().innerText()).toContain('mail.send')
    expect(await question().innerText()).toContain('cannot be taken back')
    expect(await byId(testIds.waitingHint).count()).toBe(0)
  }
  expect(tool('mail.send').happened).toEqual([])
  expect(await accessibilityFaults(page)).toEqual([])
})

it('elsewhere a hint says that it waits', async () => {
  await page.goto(`${world.system.baseUrl}/settings`)
  await byId(testIds.waitingHint).waitFor()
  expect(await byId(testIds.waitingHint).innerText()).toContain('mail.send')
  expect(await accessibilityFaults(page)).toEqual([])
  await page.goto(`${world.system.baseUrl}/memory`)
  await question().waitFor()
  expect(await byId(testIds.waitingHint).count()).toBe(0)
  expect(await accessibilityFaults(page)).toEqual([])
})

it('allowed once it happens once, and the answer goes on', async () => {
  await page.goto(`${world.system.baseUrl}/t/${tree.id}`)
  await question().waitFor()
  world.upstream.script(answer('It is on its way.'))
  await byId(testIds.allow).click()
  await quiet()
  expect(tool('mail.send').happened).toHaveLength(1)
  expect(JSON.parse(tool('mail.send').happened[0]?.argumentsText ?? '')).toEqual(letter)
  await soon(() => answers().last().innerText()).toContain('It is on its way.')
  const line = answers().last().getByTestId(testIds.actionLine)
  expect(await line.getAttribute('data-status')).toBe('done')
  await line.locator('summary').click()
  await soon(() => line.getByTestId(testIds.observation).innerText()).toBe('mail.send did it')
  expect(await line.getByTestId(testIds.actionArguments).innerText()).toContain('mira@example.org')
  expect(await accessibilityFaults(page)).toEqual([])
})

it('refused it does not happen, and the answer says so', async () => {
  world.upstream.script(sends('{"text":"again"}'), answer('As you wish.'))
  await say('And once more.')
  await question().waitFor()
  const problem = { type: '', title: '', status: 409, code: 'conflict', detail: '', action: '', trace_id: '' }
  await page.route('**/v1/approvals/*/decision', (route) => route.fulfill({ status: 409, json: problem }), { times: 1 })
  await byId(testIds.allow).click()
  expect(await question().getByTestId(testIds.problem).innerText()).toContain('Nothing was allowed')
  await byId(testIds.refuse).click()
  await quiet()
  expect(tool('mail.send').happened).toHaveLength(1)
  await soon(() => answers().last().innerText()).toContain('As you wish.')
  const line = answers().last().getByTestId(testIds.actionLine)
  expect(await line.getAttribute('data-status')).toBe('denied')
  expect(await line.innerText()).toContain('You refused it.')
})

it('an outcome that nobody knows waits for the owner’s word', async () => {
  const mail = tool('mail.send')
  mail.script = [
    (sent) => {
      happens(mail, sent)
      return { type: 'unknown', code: 'connection_lost' }
    },
  ]
  world.upstream.script(sends('{"text":"third"}'), answer('So it arrived.'))
  await say('A third time.')
  await byId(testIds.allow).click()
  await byId(testIds.openOutcome).waitFor()
  expect(await byId(testIds.openOutcome).innerText()).toContain('"third"')
  await page.goto(`${world.system.baseUrl}/memory`)
  await byId(testIds.openOutcome).waitFor()
  expect(await accessibilityFaults(page)).toEqual([])
  await byId(testIds.happened).click()
  await byId(testIds.openOutcome).waitFor({ state: 'detached' })
  await page.goto(`${world.system.baseUrl}/t/${tree.id}`)
  await soon(() => answers().last().innerText()).toContain('So it arrived.')
  expect(mail.happened).toHaveLength(2)
})

it('what only reads goes by itself and shows what it brought as letters', async () => {
  tool('look.up').script = [
    () => ({
      type: 'done',
      observation: seen('# Not a heading <img src=x onerror=alert(1)>', { trust: 'untrusted', source: 'evil.example' }),
      costMicros: null,
    }),
  ]
  world.upstream.script(calling([{ name: 'look_up', arguments: '{"text":"door"}' }]), answer('The third door.'))
  await say('Which door?')
  await soon(() => answers().last().innerText()).toContain('The third door.')
  const line = answers().last().getByTestId(testIds.actionLine)
  await line.locator('summary').click()
  await soon(() => line.getByTestId(testIds.observation).innerText()).toBe('# Not a heading <img src=x onerror=alert(1)>')
  await soon(() => line.getByTestId(testIds.actionArguments).innerText()).toBe('{\n  "text": "door"\n}')
  expect(await line.innerText()).toMatch(/evil\.example.*untrusted/s)
})

it('an answer that ended while the path was being read is there all the same', async () => {
  await page.route(
    // Not the one that asks for the tree alone.
    (url) => url.pathname === `/v1/trees/${tree.id}/path` && url.searchParams.get('limit') !== '1',
    async (route) => {
      const response = await route.fetch()
      const path = (await response.json()) as PathView
      await route.fulfill({ response, json: { ...path, nodes: path.nodes.slice(0, -1), live_run_id: null } })
    },
    { times: 1 },
  )
  await page.reload()
  await soon(() => answers().last().innerText()).toContain('The third door.')
})

it('a character is given a tool on its page; another’s change in between is shown before it is overwritten', async () => {
  const path = `/v1/characters/${tree.character_ids[0]}/grant`
  const granted = () => call<GrantView>(world.system, 'GET', path)
  const box = (name: string) => page.locator(`[data-testid="${testIds.grantTool}"][data-name="${name}"]`)
  await page.goto(`${world.system.baseUrl}/c/${tree.character_ids[0]}`)
  await box('clock').check()
  await byId(testIds.grantSave).click()
  await soon(async () => (await granted()).tools).toEqual(['look.up', 'mail.send', 'clock'])
  await box('dice').check()
  await grant(world.system, path, { tools: ['clock'], mode: 'plan' })
  await byId(testIds.grantSave).click()
  const conflict = byId(testIds.characterGrant).getByTestId(testIds.problem)
  await conflict.waitFor()
  expect(await conflict.innerText()).toContain('plan only')
  expect((await granted()).mode).toBe('plan')
  expect(await accessibilityFaults(page)).toEqual([])
  await conflict.getByRole('button', { name: 'Save mine over it' }).click()
  await conflict.waitFor({ state: 'detached' })
  expect(await granted()).toMatchObject({ mode: 'default', tools: ['look.up', 'mail.send', 'clock', 'dice'], exact: [] })
})

it('the owner’s own grant is set in the settings, its exact names behind a fold with a warning', async () => {
  await page.goto(`${world.system.baseUrl}/settings`)
  const box = (name: string) => page.locator(`[data-testid="${testIds.grantClass}"][data-name="${name}"]`)
  await box('code_executing').uncheck()
  await byId(testIds.ownerGrant).getByRole('radio', { name: 'plan only' }).click()
  await byId(testIds.grantSave).click()
  await soon(async () => (await call<GrantView>(world.system, 'GET', '/v1/grant')).mode).toBe('plan')
  const { classes } = await call<GrantView>(world.system, 'GET', '/v1/grant')
  expect(classes).toEqual(['read_only', 'reversible_local', 'trust_mutating', 'irreversible_external'])
  await byId(testIds.grantAdvanced).locator('summary').click()
  expect(await byId(testIds.grantAdvanced).innerText()).toContain('acts without asking you')
  expect(await accessibilityFaults(page)).toEqual([])
})

it('nothing broke on the page meanwhile', () => {
  expect(faults).toEqual([])
})
