/** Something that was looked at: what was found, why it matters, what to do about it. */
export interface Finding {
  /** `provider.discovery`: stays the same from version to version, for programs. */
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

/** It works, and is less good than it could be; or it could not be found out. */
export function warning(id: string, what: string, remedy: Remedy): Finding {
  return { id, level: 'warning', what, ...remedy }
}

/** Something does not work, or is not safe. */
export function fault(id: string, what: string, remedy: Remedy): Finding {
  return { id, level: 'fault', what, ...remedy }
}
