import type { Claims } from '../core/claims.ts'
import { OperatorError } from '../core/errors.ts'
import { calledFile, textOf } from './given-file.ts'

/**
 * The claims in a JSON file; `-` is standard input.
 * @throws {OperatorError} which never quotes them
 */
export function readClaims(file: string): Claims {
  const told = calledFile(file)
  const claims = parsed(textOf(file), told)
  if (typeof claims !== 'object' || claims === null || Array.isArray(claims))
    throw new OperatorError(`${told} is not a map of claims, such as { "sub": "u1", "groups": ["admins"] }`)
  return claims as Claims
}

function parsed(text: string, told: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // What the parser says quotes the claims.
    throw new OperatorError(`${told} is not JSON`)
  }
}
