import { Choice } from '../../parts/button.tsx'
import { testIds } from '../../test-ids.ts'
import type { Language, Theme } from '../../words/preferences.ts'
import { useLanguage, useTheme } from '../../words/preferences.ts'
import { useWords } from '../../words/words.ts'

/** Names the other language in that language, as its readers would look for it. */
export function LanguageSwitch() {
  const words = useWords()
  const [language, setLanguage] = useLanguage()
  const other: Language = language === 'en' ? 'zh' : 'en'
  return (
    <button
      type="button"
      className="button button-quiet"
      data-testid={testIds.languageSwitch}
      title={words.frame.languageSwitchLabel}
      lang={other === 'zh' ? 'zh-CN' : 'en'}
      onClick={() => setLanguage(other)}
    >
      {words.frame.languageSwitch}
    </button>
  )
}

export function ThemeChoice() {
  const words = useWords()
  const [theme, setTheme] = useTheme()
  return (
    <div data-testid={testIds.themeSwitch}>
      <Choice<Theme>
        label={words.frame.theme}
        value={theme}
        onChange={setTheme}
        options={[
          { value: 'system', label: words.frame.themeSystem },
          { value: 'light', label: words.frame.themeLight },
          { value: 'dark', label: words.frame.themeDark },
        ]}
      />
    </div>
  )
}
