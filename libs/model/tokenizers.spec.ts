import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { readFileSync } from 'node:fs'
import { estimateTokens } from './estimate-tokens.ts'
import { COMMON_HAN, COMMON_TRIGRAMS } from './token-shapes.ts'
import { createTokenizers, type Tokenizer } from './tokenizers.ts'

const tokenizers = createTokenizers()
let o200k: Tokenizer
beforeAll(async () => {
  o200k = await tokenizers.forModel('gpt-4o')
})

const WORDS =
  'the a of and to in that it was for on with his her they had not but from have this been which when there were would their what about into more than them some could time other then two first people water over years small light house river garden window letter evening remember quietly kettle market promise sister umbrella thunder lantern tomorrow strange believe wonderful conversation appointment philosophy'.split(
    ' ',
  )
const HAN =
  '的一是了我不人在他有这个上们来到时大地为子中你说生国年着就那和要她出也得里后自以会家可下而过天去能对小多然于心学么之都好看起发当没成只如事把还用第样道想作种开美总从无情己面最女但现前些所同日手又行意动方期它头经长儿回位分爱老因很给名法间斯知世什两次使身者被高已亲其进此话常与活正感见明问力理尔点文几定本公特做外孩相西果走将月十实向声车全信重三机工物气每并别真打太新比才便夫再书部水像眼等体却加电主界门利海受听表德少克代员许先口由死安写性马光白或住难望教命花结乐色更拉东神记处让母父应直字场平报友关放至张认接告入笑内英军候民岁往何度山觉路带万男边风解叫任金快原吃妈变通师立象数四失满战远格士音轻目条呢病始达深完今提求清王化空业思切怎非找片罗钱吗语元喜曾离飞科言干流欢约各即指合反题必该论交终林请医晚制球决传画保读运及则房早院量苦火布品近坐产答星精视五连司巴奇管类未朋且婚台夜青北队久乎越观落尽形影红爸百令周吧识步希亚术留市半热送兴造谈容极随演收首根讲整式取照办强石古华拿计您装似足双妻尼转诉米称丽客南领节衣站黑刻统断福城故历惊脸选包紧争另建维绝树系伤示愿持千史谁准联妇纪基买志静阿诗独复痛消社算'
const EMOJI = ['😀', '👩‍👧', '❤️', '🏳️‍🌈', '👍🏽', '🎉', '🍵', '✈️', '🇨🇳', '1️⃣', '🦊', '🫶', '☀', '🀄']

const english = fc
  .array(fc.constantFrom(...WORDS, '.', ',', ' — ', "don't", '\n'), { minLength: 1, maxLength: 120 })
  .map((parts) => parts.join(' '))
const chinese = fc
  .array(
    fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom(...HAN) },
      { weight: 1, arbitrary: fc.constantFrom('，', '。', '！', '？', '“', '”', '、', '\n') },
    ),
    {
      minLength: 1,
      maxLength: 200,
    },
  )
  .map((parts) => parts.join(''))
const rareHan = fc
  .array(
    fc.integer({ min: 0x4e00, max: 0x9fff }).map((code) => String.fromCodePoint(code)),
    { maxLength: 200 },
  )
  .map((parts) => parts.join(''))
const sources = ['estimate-tokens.ts', 'tokenizers.ts', 'openai-gateway.ts', 'sse-parser.ts'].map((name) =>
  readFileSync(new URL(name, import.meta.url), 'utf8'),
)
const code = fc
  .tuple(fc.constantFrom(...sources), fc.nat(4_000), fc.integer({ min: 1, max: 800 }))
  .map(([source, from, length]) => source.slice(from, from + length))
const emoji = fc.array(fc.constantFrom(...EMOJI), { maxLength: 60 }).map((parts) => parts.join(''))
const ascii = fc.string({ unit: 'grapheme-ascii', maxLength: 400 })
const gibberish = fc.string({ unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz '), maxLength: 400 })
const mixed = fc.array(fc.oneof(english, chinese, code, emoji, ascii), { maxLength: 5 }).map((parts) => parts.join(''))

describe('the over-estimate', () => {
  it.each([
    ['English', english],
    ['Chinese', chinese],
    ['any Han characters', rareHan],
    ['code', code],
    ['emoji', emoji],
    ['random ASCII', ascii],
    ['random letters', gibberish],
    ['a mixture', mixed],
    ['anything well-formed', fc.string({ unit: 'grapheme-composite', maxLength: 80 })],
  ])('is never below o200k_base on %s', (_name, arbitrary) => {
    fc.assert(
      fc.property(arbitrary, (text) => {
        expect(estimateTokens(text)).toBeGreaterThanOrEqual(o200k.count(text))
      }),
      { numRuns: 300 },
    )
  })

  it('is bounded by the UTF-8 length, and not a wild guess on prose', () => {
    fc.assert(fc.property(mixed, (text) => estimateTokens(text) <= Buffer.byteLength(text)))
    const prose = 'She walked to the market in the evening and wrote a letter to her sister about the garden. '.repeat(30)
    expect(estimateTokens(prose) / o200k.count(prose)).toBeLessThan(1.5)
    const zh = '她傍晚走到市场，给妹妹写了一封信，说起花园里的事情，还有明天的雨。'.repeat(30)
    expect(estimateTokens(zh) / o200k.count(zh)).toBeLessThan(1.9)
  })

  it('stands on tables that agree with the tokenizer', () => {
    const bit = (bits: Uint8Array, at: number): boolean => ((bits[at >> 3] ?? 0) & (1 << (at & 7))) !== 0
    const letters = 'abcdefghijklmnopqrstuvwxyz'
    const wrong: string[] = []
    const compare = (text: string, isOne: boolean): void => {
      if ((o200k.count(text) === 1) !== isOne) wrong.push(text)
    }
    let at = 0
    for (const a of letters) for (const b of letters) for (const c of letters) compare(a + b + c, bit(COMMON_TRIGRAMS, at++))
    for (let point = 0x4e00; point <= 0x9fff; point++) compare(String.fromCodePoint(point), bit(COMMON_HAN, point - 0x4e00))
    expect(wrong).toEqual([])
  })
})

describe('tokenizers', () => {
  it('are chosen by the model name', () => {
    const names = [
      'gpt-4o-mini',
      'openai/gpt-4.1',
      'gpt-5.2',
      'o3',
      'o4-mini',
      'gpt-4',
      'gpt-4-turbo',
      'gpt-3.5-turbo',
      'qwen2.5',
      'gpt-4all',
      'llama-o1x',
      'demo',
    ]
    expect(names.map((name) => tokenizers.idForModel(name))).toEqual([
      ...Array<string>(5).fill('o200k_base'),
      ...Array<string>(3).fill('cl100k_base'),
      ...Array<string>(4).fill('estimate-v1'),
    ])
  })

  it('count as OpenAI does, special names being text', async () => {
    expect(o200k.count('hello world')).toBe(2)
    expect(o200k.count('你好，世界')).toBe(3)
    expect(o200k.count('<|endoftext|>')).toBeGreaterThan(1)
    expect((await tokenizers.forModel('gpt-4')).count('hello world')).toBe(2)
    expect((await tokenizers.forModel('unknown')).isExact).toBe(false)
    expect(await tokenizers.forModel('gpt-5')).toBe(o200k)
  })

  it.each([['你'], ['a'], [' '], ['😀'], ['='], ['1'], ['ab']])('count a run of 60,000 %j in bounded work, close to the whole', (unit) => {
    // Whole, this costs time quadratic in the run: minutes.
    const count = o200k.count(unit.repeat(60_000))
    const short = o200k.count(unit.repeat(240))
    expect(count).toBeGreaterThanOrEqual(short * 250 * 0.6)
    expect(count).toBeLessThanOrEqual(short * 260 + 300)
  })

  it('count each content once per tokenizer', () => {
    let counted = 0
    const own = createTokenizers({ cacheEntries: 2 })
    const tokenizer: Tokenizer = { id: 't', isExact: true, count: (text) => ((counted += 1), text.length) }
    const content = { digest: 'd1', text: 'abc' }
    expect([own.countContent(tokenizer, content), own.countContent(tokenizer, content), counted]).toEqual([3, 3, 1])
    own.countContent({ ...tokenizer, id: 'other' }, content)
    expect(counted).toBe(2)
    own.countContent(tokenizer, { digest: 'd2', text: 'x' })
    own.countContent(tokenizer, content)
    expect(counted).toBe(4)
  })
})
