import { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { BoundedMap } from '../core/bounded-map.ts'
import type { CertificateClaims, Claims } from '../core/claims.ts'
import type { Clock } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import type { Principal, PrincipalRecord } from '../session/record/record.ts'

/** Who a certificate identifies, or why it is refused. */
export type CertificateIdentity =
  | (Principal & { readonly kind: 'accepted'; readonly clockToleranceMs: number })
  /** `subject`: of the certificate, if it can be read. */
  | { readonly kind: 'refused'; readonly why: string; readonly subject?: string | undefined }

/** Where the certificate of a client may be. */
export interface CertificateSource {
  /** The TLS connection of the client. */
  readonly tls?: object | undefined
  /** The `Client-Cert` header of a trusted proxy. */
  readonly clientCert?: string | undefined
  /** A proxy asks about the request. It may pass on the fields of its clients. */
  readonly isAsked?: unknown
}

export interface ClientCertificatesParts {
  /** Clients are asked for a certificate in the TLS handshake. */
  readonly isAsked: boolean
  /** `Client-Cert` of trusted proxies in front is read. */
  readonly readsHeader: boolean
  /** The `iss` of callers with a certificate. */
  readonly issuer: string
  readonly clock: Clock
}

/** A certificate that was read, or why it could not be. */
type Read =
  { readonly record: PrincipalRecord; readonly from: number; readonly to: number } | { readonly fault: string }

/** How many certificates are remembered. */
const maxRemembered = 1_000
/** A longer header is not read, in characters. */
const maxHeaderLength = 16 * 1024
/** The extended key usage of TLS clients (RFC 5280 §4.2.1.12), and any usage. */
const clientUsages: ReadonlySet<string> = new Set(['1.3.6.1.5.5.7.3.2', '2.5.29.37.0'])

/** Identifies programs by their certificates: by TLS, or as a proxy in front reports them. */
export class ClientCertificates {
  readonly #parts: ClientCertificatesParts
  readonly #ofConnections = new WeakMap<object, Read>()
  readonly #ofHeaders = new BoundedMap<string, Read>('client_certificates', maxRemembered)

  constructor(parts: ClientCertificatesParts) {
    this.#parts = parts
  }

  /**
   * Who sends a request; `undefined` when it comes without a certificate.
   * @param upstream whose requests a proxy may ask about
   */
  identify(
    { tls, clientCert, isAsked }: CertificateSource,
    upstream: { readonly clientCertHeader: boolean },
  ): CertificateIdentity | undefined {
    const { clock, ...parts } = this.#parts
    const readsHeader = isAsked === undefined ? parts.readsHeader : upstream.clientCertHeader
    const read =
      readsHeader && clientCert !== undefined
        ? this.#inHeader(clientCert)
        : parts.isAsked && tls !== undefined
          ? this.#ofConnection(tls as TLSSocket)
          : undefined
    if (read === undefined) return undefined
    if ('fault' in read) return { kind: 'refused', why: read.fault }
    const { record, from, to } = read
    const now = clock.now()
    // A connection may stay open beyond the end of the certificate.
    if (now < from || now >= to)
      return {
        kind: 'refused',
        why: `the certificate is ${now < from ? 'not valid yet' : 'expired'}`,
        subject: record.sub,
      }
    return { kind: 'accepted', record, clockToleranceMs: 0 }
  }

  #ofConnection(socket: TLSSocket): Read | undefined {
    const known = this.#ofConnections.get(socket)
    if (known !== undefined) return known
    const certificate = socket.getPeerX509Certificate()
    if (certificate === undefined) return undefined
    const read = socket.authorized
      ? this.#recordOf(certificate)
      : { fault: `the certificate is not valid: ${String(socket.authorizationError)}` }
    this.#ofConnections.set(socket, read)
    return read
  }

  #inHeader(text: string): Read {
    let read = this.#ofHeaders.get(text)
    if (read === undefined) this.#ofHeaders.set(text, (read = this.#readHeader(text)))
    return read
  }

  /** A Byte Sequence (RFC 8941 §3.3.5) with the DER form of the certificate (RFC 9440 §2.2). */
  #readHeader(text: string): Read {
    const [, base64] = /^[ ]*:([A-Za-z0-9+/]+={0,2}):[ ]*$/.exec(text) ?? []
    if (base64 === undefined || text.length > maxHeaderLength)
      return { fault: 'Client-Cert is not one certificate in base64 between colons (RFC 9440 §2.1)' }
    try {
      const certificate = new X509Certificate(Buffer.from(base64, 'base64'))
      const usages = certificate.keyUsage as readonly string[] | undefined
      if (usages !== undefined && !usages.some((usage) => clientUsages.has(usage)))
        return { fault: 'the certificate is not for clients (extendedKeyUsage)' }
      return this.#recordOf(certificate)
    } catch (error) {
      return { fault: `the certificate in Client-Cert cannot be read: ${reason(error)}` }
    }
  }

  #recordOf(certificate: X509Certificate): Read {
    return {
      record: recordOfCertificate(claimsOf(certificate), this.#parts.issuer),
      from: Date.parse(certificate.validFrom),
      to: Date.parse(certificate.validTo),
    }
  }
}

/** A program with a certificate of these names, as the record of a session would describe it. */
export function recordOfCertificate(claims: CertificateClaims, iss: string): PrincipalRecord {
  const sub = `certificate/${claims.subject || claims.uri[0] || claims.dns[0] || claims.sha256}`
  const certificate = claims as unknown as Claims
  return { iss, sub, claims: { iss, sub, certificate }, absolute_expires_at: Infinity, tokens: {} }
}

function claimsOf(certificate: X509Certificate): CertificateClaims {
  const { subject } = certificate.toLegacyObject() as { subject?: Readonly<Record<string, string | string[]>> }
  const named = (name: string) => [subject?.[name] ?? []].flat()
  const alternatives = alternativeNames(certificate.subjectAltName ?? '')
  const ofKind = (kind: string) => alternatives.flatMap(([each, name]) => (each === kind ? [name] : []))
  return {
    subject: oneLine(certificate.subject),
    cn: named('CN'),
    o: named('O'),
    ou: named('OU'),
    issuer: oneLine(certificate.issuer),
    dns: ofKind('DNS'),
    uri: ofKind('URI'),
    email: ofKind('email'),
    ip: ofKind('IP Address'),
    serial: certificate.serialNumber,
    sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
  }
}

function oneLine(name: string | undefined): string {
  return (name ?? '').trimEnd().replaceAll('\n', ', ')
}

/**
 * The kinds and names in the text of Node.js. A name with special characters is a JSON string
 * there, so that it cannot look like several names (CVE-2021-44532).
 */
function alternativeNames(text: string): readonly (readonly [kind: string, name: string])[] {
  const entries = text.matchAll(/([^:,"]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/g)
  return [...entries].map(([, kind = '', name = '']) => [
    kind,
    name.startsWith('"') ? (JSON.parse(name) as string) : name,
  ])
}
