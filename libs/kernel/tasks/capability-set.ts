import type { CapabilityNeeds, CapabilitySet, TaskRisk } from '#contracts'

const resumes = ['none', 'session', 'checkpoint'] as const
const cancels = ['none', 'cooperative', 'process_tree'] as const

/** What a task needs by its risk and tools; what its owner asks for beyond that only adds. Pure. */
export function needsOf({
  risk,
  tools,
  asked,
}: {
  risk: TaskRisk
  tools: readonly string[]
  asked: Partial<CapabilityNeeds>
}): CapabilityNeeds {
  const acts = tools.length > 0
  return {
    // Whatever acts is seen acting, and can be stopped to be asked about.
    structured_events: asked.structured_events === true || acts || risk === 'high',
    pause_for_approval: asked.pause_for_approval === true || acts,
    resume: stronger(resumes, asked.resume ?? 'none', acts ? 'checkpoint' : 'none'),
    cancel: stronger(cancels, asked.cancel ?? 'none', 'cooperative'),
    artifact_export: asked.artifact_export ?? ['text/plain'],
    workspace_isolation: asked.workspace_isolation ?? [],
    raw_event_provenance: asked.raw_event_provenance === true || risk === 'high',
  }
}

/**
 * Which needs a runtime does not meet; empty where it may be scheduled. `no` and what is not known are the same: neither is ever scheduled
 * past (`003…` §5). Pure.
 */
export function missingCapabilities(needs: CapabilityNeeds, has: CapabilitySet): (keyof CapabilityNeeds)[] {
  const missing: (keyof CapabilityNeeds)[] = []
  for (const name of ['structured_events', 'pause_for_approval', 'raw_event_provenance'] as const) {
    if (needs[name] && has[name] !== 'yes') missing.push(name)
  }
  if (!reaches(resumes, needs.resume, has.resume)) missing.push('resume')
  if (!reaches(cancels, needs.cancel, has.cancel)) missing.push('cancel')
  const exported = has.artifact_export
  if (exported === 'unknown' ? needs.artifact_export.length > 0 : needs.artifact_export.some((type) => !exported.includes(type))) {
    missing.push('artifact_export')
  }
  const isolation = has.workspace_isolation
  if (needs.workspace_isolation.length > 0 && (isolation === 'unknown' || !needs.workspace_isolation.includes(isolation))) {
    missing.push('workspace_isolation')
  }
  return missing
}

function stronger<Level extends string>(levels: readonly Level[], first: Level, second: Level): Level {
  return levels.indexOf(first) > levels.indexOf(second) ? first : second
}

function reaches<Level extends string>(levels: readonly Level[], needed: Level, has: Level | 'unknown'): boolean {
  const level = (levels as readonly string[]).indexOf(has)
  return levels.indexOf(needed) === 0 || level >= levels.indexOf(needed)
}
