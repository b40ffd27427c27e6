import { statSync } from 'node:fs'
import type { SecretFile } from '../config/document/report.ts'
import { fault, type Finding, ok, warning } from './finding.ts'

/** Who else may read or change the files that hold secrets, and the configuration itself. */
export function fileFindings(file: string, secretFiles: readonly SecretFile[]): Finding[] {
  return [...configurationFindings(file), ...secretFiles.map(secretFinding)]
}

function configurationFindings(file: string): Finding[] {
  if ((modeOf(file) & 0o002) === 0) return []
  return [
    fault('files.configuration', `everybody on this machine may change ${file} (mode ${octal(modeOf(file))})`, {
      why: 'whoever changes it decides who gets in, and which headers the application believes',
      todo: `chmod o-w ${file}`,
    }),
  ]
}

function secretFinding({ setting, file }: SecretFile): Finding {
  const id = 'files.secret'
  const mode = modeOf(file)
  const what = `${file} (${setting}) has the mode ${octal(mode)}`
  if ((mode & 0o022) !== 0)
    return fault(id, `${what}: others may change it`, {
      why: 'whoever changes a key can make sessions, or keep everybody out',
      todo: `chmod 400 ${file}, for the user that the gateway runs as`,
    })
  if ((mode & 0o004) !== 0)
    return warning(id, `${what}: everybody on this machine may read it`, {
      why: 'whoever knows it can act as this client or open what lies in Redis; in a container of its own there is nobody else',
      todo: `chmod 400 ${file}, for the user that the gateway runs as; in Kubernetes defaultMode: 0440 with fsGroup`,
    })
  return ok(id, what)
}

function modeOf(file: string): number {
  try {
    return statSync(file).mode & 0o777
  } catch {
    // It has been read a moment ago; now there is nothing to say of it.
    return 0
  }
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}
