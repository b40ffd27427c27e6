import type { HeaderConfig, RequestFact } from '../config/model/header.ts'
import { encodings } from './encodings.ts'

/** The part of the facts of a request that headers for an upstream may be made of. */
export interface ForwardableFacts {
  readonly forwarded: { readonly clientAddress: string; readonly proto: 'http' | 'https'; readonly host: string }
}

/** The headers of an upstream that need no session, prepared before the first request. */
export interface AnonymousHeaders {
  /** Names and values of constants, alternating. */
  readonly constants: readonly string[]
  readonly facts: readonly { readonly name: string; readonly fact: RequestFact }[]
}

/**
 * Everybody gets these headers, also on public paths, except a constant `Authorization`: it says
 * who makes the request.
 */
export function anonymousHeaders(headers: readonly HeaderConfig[]): AnonymousHeaders {
  return {
    constants: headers.flatMap(({ name, source }) =>
      source.kind === 'constant' && name.toLowerCase() !== 'authorization'
        ? [name, encodings.utf8.whole(source.value)]
        : [],
    ),
    facts: headers.flatMap(({ name, source }) => (source.kind === 'request' ? [{ name, fact: source.request }] : [])),
  }
}

/**
 * The header fields that tell an upstream about the request: names and values, alternating.
 * @param path the `path` of the upstream
 */
export function requestFields(
  { facts }: Pick<AnonymousHeaders, 'facts'>,
  request: ForwardableFacts,
  path: string,
): readonly string[] {
  return facts.flatMap(({ name, fact }) => {
    const value = factValue(fact, request, path)
    return value === '' ? [] : [name, value]
  })
}

function factValue(fact: RequestFact, { forwarded }: ForwardableFacts, path: string): string {
  switch (fact) {
    case 'client_address':
      return forwarded.clientAddress
    case 'scheme':
      return forwarded.proto
    case 'host':
      return forwarded.host
    case 'port':
      return /:(\d+)$/.exec(forwarded.host)?.[1] ?? (forwarded.proto === 'https' ? '443' : '80')
    case 'prefix':
      return path.slice(0, -1)
  }
}
