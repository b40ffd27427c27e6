import type { ClaimPath } from '../core/claims.ts'
import type { HeaderConfig } from './model/header.ts'

/** The claims that the value of a header is made of. */
export function claimsIn({ source }: HeaderConfig): readonly ClaimPath[] {
  switch (source.kind) {
    case 'claim':
      return [source.path]
    case 'first_of':
      return source.firstOf
    case 'template':
      return source.template.filter((part) => typeof part !== 'string')
    case 'basic':
      return source.user.filter((part) => typeof part !== 'string')
    case 'bearer':
    case 'exchanged':
    case 'constant':
    case 'request':
      return []
  }
}
