import { isAccountName } from '../config/build/callers.ts'
import { OperatorError } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import { hashSecret } from '../core/scrypt-hash.ts'
import { CallFault, reader, readOptions, takeNone, type Terminal } from './command.ts'
import { readText } from './given-file.ts'

/** The shortest secret that is accepted, in characters. */
const shortest = 16

/** Reads the arguments of `gatehouse service-account`. */
export const readServiceAccountCall = reader((argv) => {
  const { values, positionals } = readOptions(argv, { stdin: { type: 'boolean', default: false } })
  const [name, ...more] = positionals
  if (name === undefined) throw new CallFault('the name of the service account is missing')
  takeNone(more)
  if (!isAccountName(name))
    throw new CallFault(
      `"${name}" is not a name for a service account: it has at most 64 letters, digits, ".", "_" and "-"`,
    )
  return (terminal) => printLine(name, values.stdin ? givenSecret() : undefined, terminal)
})

/** @throws {OperatorError} when it is no usable secret */
function givenSecret(): string {
  const secret = readText('-').replace(/\r?\n$/, '')
  if (/\p{Cc}|\ufffd/u.test(secret)) throw new OperatorError('the secret on standard input is not one line of text')
  if (secret.length < shortest)
    throw new OperatorError(`the secret on standard input is shorter than ${shortest} characters`)
  return secret
}

async function printLine(name: string, given: string | undefined, { out, err }: Terminal): Promise<number> {
  // 192 bits.
  const secret = given ?? randomToken(24)
  out(`${name}:${await hashSecret(secret)}\n`)
  if (given === undefined) err(`The secret of ${name} is shown only now: ${secret}\n`)
  return 0
}
