import { useState } from 'react'
import type { ReactNode } from 'react'
import type { CharacterView } from '#contracts'
import { characterApi } from '../api/endpoints.ts'
import { testIds } from '../test-ids.ts'
import { useFormat, useWords } from '../words/words.ts'
import { Button } from './button.tsx'

/** An empty view: what it is for and what to do first. */
export function Empty({ title, text, children }: { title: string; text: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      <p className="empty-text">{text}</p>
      {children}
    </div>
  )
}

export function Loading() {
  const words = useWords()
  return (
    <p className="loading" role="status">
      {words.common.loading}
    </p>
  )
}

/** The seal of what is canonical: the page's one loud thing. */
export function Seal({ fresh = false, size = 'text' }: { fresh?: boolean; size?: 'text' | 'small' }) {
  const words = useWords()
  return (
    <span
      className={`seal seal-${size}${fresh ? ' seal-fresh' : ''}`}
      role="img"
      aria-label={words.talk.canonical}
      title={words.talk.canonicalTitle}
      data-testid={testIds.canonicalSeal}
    >
      <span aria-hidden="true" lang="zh">
        {words.talk.seal}
      </span>
    </span>
  )
}

/** The mark of an answer that broke off. */
export function PartialMark() {
  const words = useWords()
  return (
    <span className="partial-mark" data-testid={testIds.partialMark}>
      <span aria-hidden="true" lang="zh">
        {words.talk.partialMark}
      </span>
      <span>{words.talk.partial}</span>
    </span>
  )
}

/** A moment told as distance, with the exact time on hover. */
export function When({ at }: { at: string }) {
  const format = useFormat()
  return (
    <time dateTime={at} title={format.moment(at)}>
      {format.relative(at)}
    </time>
  )
}

export function Avatar({
  character,
  size = 'small',
}: {
  character: Pick<CharacterView, 'id' | 'name' | 'has_avatar' | 'version'>
  size?: 'small' | 'large'
}) {
  const [broken, setBroken] = useState(false)
  if (character.has_avatar && !broken) {
    return (
      <img
        className={`avatar avatar-${size}`}
        src={characterApi.avatarUrl(character.id, character.version)}
        alt=""
        loading="lazy"
        onError={() => setBroken(true)}
      />
    )
  }
  return (
    <span className={`avatar avatar-${size} avatar-letter`} aria-hidden="true">
      {[...character.name.trim()][0] ?? '·'}
    </span>
  )
}

/** A text shown once, with a button that copies it. */
export function CopyLine({ text, testId }: { text: string; testId?: string }) {
  const words = useWords()
  const [copied, setCopied] = useState(false)
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false), // no clipboard on plain http: the text stands there to be selected
    )
  }
  return (
    <div className="copy-line">
      <code data-testid={testId}>{text}</code>
      <Button look="quiet" onClick={copy}>
        {copied ? words.common.copied : words.common.copy}
      </Button>
    </div>
  )
}

export function Badge({
  children,
  tone = 'plain',
  title,
}: {
  children: ReactNode
  tone?: 'plain' | 'amber' | 'indigo' | 'cinnabar'
  title?: string
}) {
  return (
    <span className={`badge badge-${tone}`} title={title}>
      {children}
    </span>
  )
}
