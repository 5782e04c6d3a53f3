import type { ButtonHTMLAttributes, ReactNode } from 'react'
import type { IconName } from './icons.tsx'
import { Icon } from './icons.tsx'

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  'data-first'?: boolean
  look?: 'plain' | 'quiet' | 'strong' | 'danger'
  icon?: IconName
  busy?: boolean
  testId?: string
}

/** A button with words. While `busy` it stays in place and takes no press. */
export function Button({ look = 'plain', icon, busy = false, testId, children, className, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      data-testid={testId}
      className={`button button-${look}${className === undefined ? '' : ` ${className}`}`}
      disabled={disabled === true || busy}
      aria-busy={busy || undefined}
      {...rest}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  )
}

/** A button that shows a drawing alone; its label is spoken and shown on hover. */
export function IconButton({
  label,
  icon,
  testId,
  className,
  ...rest
}: { label: string; icon: IconName; testId?: string } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button
      type="button"
      data-testid={testId}
      className={`icon-button${className === undefined ? '' : ` ${className}`}`}
      aria-label={label}
      title={label}
      {...rest}
    >
      <Icon name={icon} />
    </button>
  )
}

/** One choice among a few, all of them seen. */
export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: T
  options: readonly { value: T; label: ReactNode }[]
  onChange: (value: T) => void
}) {
  return (
    <div className="choice" role="radiogroup" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          role="radio"
          aria-checked={option.value === value}
          className="choice-option"
          onClick={() => onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </div>
  )
}

/** A labelled list of choices for filters and forms. */
export function Select<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: T
  options: readonly { value: T; label: string }[]
  onChange: (value: T) => void
}) {
  return (
    <label className="field field-inline">
      <span className="field-label">{label}</span>
      <select
        value={value}
        onChange={(event) => {
          const chosen = options.find((option) => option.value === event.target.value)
          if (chosen !== undefined) onChange(chosen.value)
        }}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  )
}
