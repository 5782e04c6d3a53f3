import { useSyncExternalStore } from 'react'
import { readPersisted, usePersisted, writePersisted } from '../store/persisted.ts'

export type Language = 'en' | 'zh'
export type Theme = 'system' | 'light' | 'dark'

function languageOf(stored: string | null): Language {
  if (stored === 'en' || stored === 'zh') return stored
  return navigator.languages.some((language) => language.toLowerCase().startsWith('zh')) ? 'zh' : 'en'
}

function themeOf(stored: string | null): Theme {
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

/** The chosen language, else the browser's; switching shows at once and is kept. */
export function useLanguage(): [Language, (language: Language) => void] {
  const [stored, store] = usePersisted('local', 'language')
  const set = (language: Language) => {
    store(language)
    applyPreferences()
  }
  return [languageOf(stored), set]
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [stored] = usePersisted('local', 'theme')
  const set = (theme: Theme) => {
    writePersisted('local', 'theme', theme === 'system' ? null : theme)
    applyPreferences()
  }
  return [themeOf(stored), set]
}

/** Writes language and theme onto the document; called before the first paint and after each change. */
export function applyPreferences(): void {
  document.documentElement.lang = languageOf(readPersisted('local', 'language')) === 'zh' ? 'zh-CN' : 'en'
  const theme = themeOf(readPersisted('local', 'theme'))
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

/** One column and a bottom bar; the style sheet draws the line at the same width. */
export const phone = '(max-width: 759px)'

/** Whether a media query holds, followed as it changes. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = window.matchMedia(query)
      media.addEventListener('change', listener)
      return () => media.removeEventListener('change', listener)
    },
    () => window.matchMedia(query).matches,
  )
}
