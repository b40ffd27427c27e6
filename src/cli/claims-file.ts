import type { Claims } from '../core/claims.ts'
import { OperatorError } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { displayName, readText } from './given-file.ts'

const example = '{ "sub": "u1", "groups": ["admins"] }'

/**
 * Reads claims from a JSON file; `-` is standard input.
 * @throws {OperatorError} when the file cannot be read or is invalid; the message quotes no claim
 */
export function readClaims(file: string): Claims {
  const name = displayName(file)
  const claims = parseJson(readText(file, `--as needs a JSON file of claims, such as ${example}`), name)
  if (!isObject(claims)) throw new OperatorError(`${name} must be a JSON object of claims, such as ${example}`)
  return claims as Claims
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The error of the parser quotes the text, and so the claims.
    throw new OperatorError(`${name} is not JSON`)
  }
}
