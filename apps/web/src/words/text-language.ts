/**
 * The language tag of a piece of text by its script, for line height, fonts and screen readers. Empty where the script does not tell the
 * language: the text then counts as of unknown language, not as of the page's.
 */
export function languageOfText(text: string): 'zh' | 'ja' | 'ko' | '' {
  const sample = text.slice(0, 600)
  const han = sample.match(/\p{Script=Han}/gu)?.length ?? 0
  const kana = sample.match(/[\p{Script=Hiragana}\p{Script=Katakana}]/gu)?.length ?? 0
  const hangul = sample.match(/\p{Script=Hangul}/gu)?.length ?? 0
  const latin = sample.match(/\p{Script=Latin}/gu)?.length ?? 0
  // A Han character or syllable block says about as much as three letters.
  if (hangul * 3 > latin && hangul > han) return 'ko'
  if (kana > 0 && (kana + han) * 3 > latin) return 'ja'
  if (han * 3 > latin) return 'zh'
  return ''
}
