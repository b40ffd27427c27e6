import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:https'
import { createSecureContext, type SecureContext, type SecureContextOptions, type TlsOptions } from 'node:tls'
import type { CertificateFiles, ListenTlsConfig } from '../config/model/gateway.ts'
import { OperatorError, reason } from '../core/errors.ts'
import type { Log } from '../observe/log.ts'

interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
  /**
   * The authorities of client certificates. Each certificate needs them: without `ca`, Node.js
   * accepts client certificates of all public authorities.
   */
  readonly ca?: Buffer
}

/** What all certificates of a listener have in common. */
const tlsOptions = { minVersion: 'TLSv1.2' } as const satisfies SecureContextOptions

/** @throws {OperatorError} when a file cannot be read */
function readCertificate({ certFile, keyFile }: CertificateFiles, clientCaFile: string | undefined): Certificate {
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

interface Served {
  readonly files: CertificateFiles
  content: Certificate
  context: SecureContext
  leaf: X509Certificate
}

/**
 * The certificates of a listener: the first one is for clients that ask for no host name (SNI, RFC
 * 6066 §3) or for one that no certificate has. Renewed files are used for new connections; open
 * connections stay. When a new certificate is invalid, the old one stays in use. The files are read
 * periodically, because file system events miss renewals by rename and by symbolic link.
 */
export class Certificates {
  readonly #served: readonly Served[]
  readonly #log: Log
  readonly #clientCaFile: string | undefined
  #timer: NodeJS.Timeout | undefined

  /** @throws {OperatorError} when a file cannot be read */
  constructor({ certificates, clientCaFile, ...first }: ListenTlsConfig, log: Log) {
    this.#log = log
    this.#clientCaFile = clientCaFile
    this.#served = [first, ...certificates].map((files) => ({
      files,
      ...loaded(readCertificate(files, clientCaFile)),
    }))
  }

  /** The options of a new server. */
  get options(): TlsOptions {
    const [first] = this.#served
    return {
      ...{ ...tlsOptions, ...first?.content },
      // A client without a certificate, or with a wrong one, is a matter of the rules.
      ...(this.#clientCaFile !== undefined && { requestCert: true, rejectUnauthorized: false }),
      ...(this.#served.length > 1 && { SNICallback: this.#choose }),
    }
  }

  /** When the first of them ends, in ms since 1970. */
  get firstEnd(): number {
    return Math.min(...this.#served.map(({ leaf }) => Date.parse(leaf.validTo)))
  }

  /** Uses renewed files in this server, until `close`. */
  renewIn(server: Pick<Server, 'setSecureContext'>, everyMs = checkEveryMs): void {
    const check = (served: Served) => {
      const { certFile } = served.files
      try {
        const found = readCertificate(served.files, this.#clientCaFile)
        if (isSame(found, served.content)) return
        Object.assign(served, loaded(found))
        if (served === this.#served[0]) server.setSecureContext({ ...tlsOptions, ...found })
        this.#log.info('listener.certificate_renewed', { file: certFile })
      } catch (error) {
        this.#log.error('listener.certificate_rejected', { file: certFile, reason: reason(error) })
      }
    }
    this.#timer = setInterval(() => this.#served.forEach(check), everyMs).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  readonly #choose = (host: string, done: (error: null, context?: SecureContext) => void): void => {
    const served = this.#served.find(({ leaf }) => leaf.checkHost(host) !== undefined)
    done(null, served?.context)
  }
}

/** @throws when the certificate is invalid, or the key is not its own */
function loaded(content: Certificate): Pick<Served, 'content' | 'context' | 'leaf'> {
  return {
    content,
    context: createSecureContext({ ...tlsOptions, ...content }),
    leaf: new X509Certificate(content.cert),
  }
}
