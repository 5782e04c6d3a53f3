import { characterApi } from '../../api/endpoints.ts'
import { Badge, When } from '../../parts/small.tsx'
import { useResource } from '../../store/resource.ts'
import { useWords } from '../../words/words.ts'

export function Versions({ characterId }: { characterId: string }) {
  const words = useWords()
  const versions = useResource(`versions:${characterId}`, () => characterApi.versions(characterId))
  const items = versions.data?.items ?? []
  if (items.length === 0) return null
  const origins = {
    import: words.characters.originImport,
    authored: words.characters.originAuthored,
    recast: words.characters.originRecast,
  }
  return (
    <section>
      <h2>{words.characters.versions}</h2>
      <ul className="plain-list">
        {items.map((version) => (
          <li key={version.id}>
            {words.characters.version(version.version)} <span className="faint">{origins[version.origin]}</span>{' '}
            <span className="faint">
              <When at={version.created_at} />
            </span>{' '}
            {version.current && <Badge tone="indigo">{words.characters.current}</Badge>}
          </li>
        ))}
      </ul>
    </section>
  )
}
