import { readFileSync } from 'node:fs'
import type { Server } from 'node:https'
import { OperatorError, reason } from '../core/errors.ts'
import type { Log } from '../observe/log.ts'

export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
  /** The authorities of client certificates. Absent: clients are not asked for one. */
  readonly clientCaFile?: string | undefined
}

interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
  readonly ca?: Buffer
}

/** @throws {OperatorError} when a file cannot be read */
export function readCertificate({ certFile, keyFile, clientCaFile }: CertificateFiles): Certificate {
  const read = (file: string) => {
    try {
      return readFileSync(file)
    } catch (cause) {
      throw new OperatorError(`the certificate file ${file} cannot be read: ${reason(cause)}`, { cause })
    }
  }
  return { cert: read(certFile), key: read(keyFile), ...(clientCaFile !== undefined && { ca: read(clientCaFile) }) }
}

function isSame(one: Certificate, other: Certificate): boolean {
  const isEqual = (a: Buffer = nothing, b: Buffer = nothing) => a.equals(b)
  return isEqual(one.cert, other.cert) && isEqual(one.key, other.key) && isEqual(one.ca, other.ca)
}

const nothing = Buffer.alloc(0)

/** How often the certificate files are read, in ms. */
const checkEveryMs = 30_000

/**
 * Uses a renewed certificate for new connections; open connections stay. When the new certificate
 * is invalid, the old one stays in use. The files are read periodically, because file system events
 * miss renewals by rename and by symbolic link.
 */
export function renewCertificate(
  server: Pick<Server, 'setSecureContext'>,
  tls: CertificateFiles,
  log: Log,
  everyMs = checkEveryMs,
): { close(): void } {
  let current = readCertificate(tls)
  const check = () => {
    try {
      const found = readCertificate(tls)
      if (isSame(found, current)) return
      current = found
      server.setSecureContext(found)
      log.info('listener.certificate_renewed', { file: tls.certFile })
    } catch (error) {
      log.error('listener.certificate_rejected', { file: tls.certFile, reason: reason(error) })
    }
  }
  const timer = setInterval(check, everyMs).unref()
  return { close: () => clearInterval(timer) }
}
