import type { Directive } from './apache-file.ts'
import type { RemoteUser } from './apache-requirements.ts'

/** A virtual host: its directives, after those of the server. */
export interface Site {
  readonly directives: readonly Directive[]
  readonly externalUrl: string
  readonly user: RemoteUser
}

/** The last value of a directive, which replaces earlier ones. */
export function argsOf({ directives }: Pick<Site, 'directives'>, name: string): readonly string[] | undefined {
  return directives.findLast((directive) => directive.name === name.toLowerCase())?.args
}

export function valueOf(site: Pick<Site, 'directives'>, name: string): string | undefined {
  return argsOf(site, name)?.join(' ')
}

export function issuerOf(site: Pick<Site, 'directives'>): string | undefined {
  const metadata = valueOf(site, 'OIDCProviderMetadataURL')
  return valueOf(site, 'OIDCProviderIssuer') ?? metadata?.replace(/\/\.well-known\/openid-configuration$/, '')
}
