import { Document, type Node } from 'yaml'
import { printable } from '../../../src/entries/import.ts'

/** A file of another program, or a part of its configuration. */
export interface GivenText {
  /** How messages name it. */
  readonly name: string
  readonly text: string
  /** The text of a file whose path is relative to this one; `undefined` when there is none. */
  readonly beside?: ((path: string) => string | undefined) | undefined
}

/** What a reader makes of each text. @throws {SyntaxError} names the text */
export function eachNamed<T>(texts: readonly GivenText[], read: (text: string, given: GivenText) => T): readonly T[] {
  return texts.map((given) => {
    const { name, text } = given
    try {
      return read(text, given)
    } catch (error) {
      if (error instanceof SyntaxError) throw new SyntaxError(`${name}: ${error.message}`, { cause: error })
      throw error
    }
  })
}

/** A configuration as it is written in the file. */
export interface WrittenConfig {
  readonly listen?: unknown
  readonly external_url: string
  readonly reserved_prefix?: string | undefined
  readonly trusted_proxies?: readonly string[] | undefined
  readonly session?: object
  readonly upstreams: Readonly<Record<string, WrittenUpstream>>
}

export interface WrittenUpstream {
  readonly path?: string | undefined
  readonly hosts?: readonly string[] | undefined
  readonly external_url?: string | undefined
  readonly headers?: object | undefined
  readonly rules?: readonly object[] | undefined
  readonly [setting: string]: unknown
}

/** A rule as written in the file. */
export interface Rule {
  readonly path: string
  readonly methods?: readonly string[]
  readonly networks?: readonly string[]
  readonly access?: 'public' | 'optional'
  readonly unauthenticated?: '401' | 'redirect'
  readonly require?: readonly Requirement[]
  readonly respond?:
    { readonly to: string; readonly status: number } | { readonly status: number; readonly text?: string }
}

export type Requirement =
  | Node
  | {
      readonly claim: string
      readonly equals?: string
      readonly any_of?: readonly string[]
      readonly none_of?: readonly string[]
      readonly contains?: string
      readonly begins_with?: string
      readonly ends_with?: string
      readonly matches?: string
    }
  | { readonly email_domains: readonly string[]; readonly verified?: false }
  | { readonly networks: readonly string[] }
  | { readonly methods: readonly string[] }
  | { readonly time: object }
  | { readonly any: readonly Requirement[] }
  | { readonly all: readonly Requirement[] }
  | { readonly not: Requirement }

const allNetworks = ['0.0.0.0/0', '::/0']

/** A rule that denies all people, with the reason as its comment. */
export function denyingRule(path: string, reason: string): Rule {
  return { path, require: [denial([reason])] }
}

/**
 * The first rule of an upstream for a folder: the other program does not forward the folder without
 * its slash. The rule is public, because a rule that restricts would also match it with the slash.
 */
export function withSlash(folder: string): Rule {
  return { path: folder.slice(0, -1), access: 'public', respond: { to: folder, status: 302 } }
}

/** A requirement that no request meets, with a comment. */
export function denial(comment: readonly string[]): Node {
  const node = new Document().createNode({ not: { networks: allNetworks } })
  node.commentBefore = comment.map((line) => ` ${printable(line)}`).join('\n')
  return node
}

/** A requirement that no request meets until an operator has decided; none without denials. */
export function undecided(denials: readonly string[]): readonly Requirement[] {
  if (denials.length === 0) return []
  return [
    denial([
      'Denies all people until this is decided:',
      ...denials.map((reason) => `- ${reason}`),
      'Write the decision as requirements, then remove this one.',
    ]),
  ]
}

/** The upstreams, where a first rule denies all people until an operator has decided. */
export function untilDecided(
  upstreams: Readonly<Record<string, WrittenUpstream>>,
  denials: readonly string[],
): Readonly<Record<string, WrittenUpstream>> {
  if (denials.length === 0) return upstreams
  const rule = { path: '/*', require: undecided(denials) }
  return Object.fromEntries(
    Object.entries(upstreams).map(([name, upstream]) => [
      name,
      { ...upstream, rules: [hasApplication(upstream) ? rule : { ...rule, ...nothing }, ...(upstream.rules ?? [])] },
    ]),
  )
}

/** An upstream without an application needs a response in each rule. */
const nothing = { respond: { status: 404 } }

function hasApplication({ url, targets, forward_auth }: WrittenUpstream): boolean {
  return [url, targets, forward_auth].some((setting) => setting !== undefined)
}

/** An address of this machine for plain http, at a port that no upstream has. */
export function plainListen(upstreams: WrittenConfig['upstreams']): string {
  const written = JSON.stringify(upstreams)
  const port = [8080, 8081, 8082, 8083].find((each) => !written.includes(`:${each}`)) ?? 8084
  return `127.0.0.1:${port}`
}

/** This name, with a number when it is taken. */
export function freeName(base: string, isTaken: (name: string) => boolean): string {
  let name = base
  for (let number = 2; isTaken(name); number++) name = `${base}-${number}`
  return name
}

/** A pattern that matches exactly this text. */
export function literal(text: string): string {
  return text.replaceAll(/[^\w-]/g, '\\$&')
}

export function anyOf(requirements: readonly Requirement[]): Requirement {
  const [only] = requirements
  return requirements.length === 1 && only !== undefined ? only : { any: requirements }
}

/** One requirement for several. `true`: none is needed; `false`: no person meets it. */
export function joined(each: readonly (Requirement | boolean)[], kind: 'all' | 'any'): Requirement | boolean {
  const deciding = kind === 'any'
  if (each.includes(deciding)) return deciding
  const requirements = each.filter((one) => typeof one !== 'boolean')
  const [only] = requirements
  if (only === undefined) return !deciding
  if (requirements.length === 1) return only
  return deciding ? { any: requirements } : { all: requirements }
}

/** The path of a claim; a name with special characters is quoted. */
export function claimPath(name: string): string {
  return /^[\w-]+(?:\.[\w-]+)*$/.test(name) ? name : JSON.stringify(name)
}
