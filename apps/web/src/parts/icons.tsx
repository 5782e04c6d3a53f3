const drawings = {
  map: 'M5 3v14M5 7c0 3 3 3 5 3s5 1 5 4v3M15 17h.01M5 3h.01M10 10h.01',
  memory: 'M5 4h8a2 2 0 0 1 2 2v11l-6-3-6 3V6a2 2 0 0 1 2-2z',
  why: 'M10 17h.01M7 7a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.9',
  talk: 'M4 4h12v9H9l-4 3.5V13H4z',
  people: 'M10 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4 17c0-3.5 2.7-5 6-5s6 1.5 6 5',
  settings: 'M4 6h7M15 6h1M4 14h1M9 14h7M13 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7 16a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  search: 'M9 14A5 5 0 1 0 9 4a5 5 0 0 0 0 10zM13 13l4 4',
  close: 'M5 5l10 10M15 5L5 15',
  plus: 'M10 4v12M4 10h12',
  up: 'M10 16V4M5 9l5-5 5 5',
  down: 'M10 4v12M5 11l5 5 5-5',
  chevronDown: 'M5 8l5 5 5-5',
  refresh: 'M15.5 8A6 6 0 1 0 16 11M16 4v4h-4',
  left: 'M12 5l-5 5 5 5',
  right: 'M8 5l5 5-5 5',
  stop: 'M6 6h8v8H6z',
  import: 'M10 3v9M6 9l4 4 4-4M4 16h12',
  pen: 'M4 16l1-4 8-8 3 3-8 8z',
  trash: 'M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11',
  more: 'M5 10h.01M10 10h.01M15 10h.01',
  keys: 'M3 6h14v8H3zM6 9h.01M9 9h.01M12 9h.01M14.5 9h.01M7 12h6',
  admin: 'M10 3l6 2v5c0 4-3 6-6 7-3-1-6-3-6-7V5z',
  sun: 'M10 13a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM10 2v2M10 16v2M2 10h2M16 10h2M4.5 4.5l1.3 1.3M14.2 14.2l1.3 1.3M15.5 4.5l-1.3 1.3M5.8 14.2l-1.3 1.3',
  moon: 'M15.5 12.5A6.5 6.5 0 0 1 7.5 4.5a6.5 6.5 0 1 0 8 8z',
  halves: 'M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14',
  quote: 'M5 13c2 0 3-1 3-4V6H4v4h3M13 13c2 0 3-1 3-4V6h-4v4h3',
  link: 'M8 12l4-4M7 9l-2 2a3 3 0 0 0 4 4l2-2M13 11l2-2a3 3 0 0 0-4-4L9 7',
} as const

export type IconName = keyof typeof drawings

/** A line drawing in the colour of the text beside it; it says nothing to a screen reader. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={drawings[name]} />
    </svg>
  )
}
