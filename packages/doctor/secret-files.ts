import { statSync } from 'node:fs'
import type { SecretFile } from '../../src/entries/doctor.ts'
import { fault, type Finding, found, ok, warning } from './finding.ts'

/** The findings about the permissions of the configuration file and the files of secrets. */
export function fileFindings(file: string, secretFiles: readonly SecretFile[]): Finding[] {
  return found(configurationFinding(file), ...secretFiles.map(secretFinding))
}

function configurationFinding(file: string): Finding | undefined {
  const mode = modeOf(file)
  if (mode === undefined || (mode & 0o002) === 0) return undefined
  return fault('files.configuration', `every user of this machine may change ${file} (mode ${octal(mode)})`, {
    why: 'an attacker who changes it decides who gets access, and which headers the application gets',
    todo: `chmod o-w ${file}`,
  })
}

function secretFinding({ setting, file }: SecretFile): Finding | undefined {
  const id = 'files.secret'
  const mode = modeOf(file)
  if (mode === undefined) return undefined
  const what = `${file} (${setting}) has the mode ${octal(mode)}`
  const hasHashes = setting.endsWith('.service_accounts.file')
  if ((mode & 0o022) !== 0)
    return fault(id, `${what}: other users may change it`, {
      why: hasHashes
        ? 'an attacker who adds a line has a service account'
        : 'an attacker who changes a key can create sessions, or lock everybody out',
      todo: `chmod 400 ${file}, for the user that the gateway runs as`,
    })
  if ((mode & 0o004) !== 0)
    return warning(id, `${what}: every user of this machine may read it`, {
      why: hasHashes
        ? 'a user who reads it can try to guess the secrets of the service accounts'
        : 'a user who reads it can act as this client, or decrypt what is stored in Redis; in a container there are usually no other users',
      todo: `chmod 400 ${file}, for the user that the gateway runs as; in Kubernetes defaultMode: 0440 with fsGroup`,
    })
  return ok(id, what)
}

/** `undefined`: it cannot be read now. The file of a client assertion may come after the start. */
function modeOf(file: string): number | undefined {
  try {
    return statSync(file).mode & 0o777
  } catch {
    return undefined
  }
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}
