/** The result of one check: what was found, why it matters, what to do. */
export interface Finding {
  /** For programs, such as `provider.discovery`. It stays the same across versions. */
  readonly id: string
  readonly level: 'ok' | 'warning' | 'fault'
  readonly what: string
  readonly why?: string
  readonly todo?: string
}

interface Remedy {
  readonly why: string
  readonly todo: string
}

export function ok(id: string, what: string): Finding {
  return { id, level: 'ok', what }
}

/** It works but should be improved, or its state is unknown. */
export function warning(id: string, what: string, remedy: Remedy): Finding {
  return { id, level: 'warning', what, ...remedy }
}

/** It does not work, or is not secure. */
export function fault(id: string, what: string, remedy: Remedy): Finding {
  return { id, level: 'fault', what, ...remedy }
}

/** The findings of some checks, of which each may have none. */
export function found(...all: readonly (Finding | undefined)[]): Finding[] {
  return all.filter((finding) => finding !== undefined)
}

/** The finding with its texts changed. */
export function withTexts({ what, why, todo, ...finding }: Finding, change: (text: string) => string): Finding {
  return {
    ...finding,
    what: change(what),
    ...(why !== undefined && { why: change(why) }),
    ...(todo !== undefined && { todo: change(todo) }),
  }
}
