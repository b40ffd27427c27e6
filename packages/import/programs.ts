import { translateApache } from './apache/mod-auth-openidc.ts'
import { readOptions as readProgramOptions } from './common/option-sources.ts'
import type { Translated } from './common/translated-file.ts'
import type { GivenText } from './common/written-config.ts'
import { traefikDialect, translateTraefik } from './forward-auth/traefik-forward-auth.ts'
import { translateVouch, vouchDialect } from './forward-auth/vouch.ts'
import { readOptionsOf } from './oauth2-proxy/oauth2-proxy-sources.ts'
import { translate as translateOauth2Proxy } from './oauth2-proxy/oauth2-proxy.ts'
import { translatePomerium } from './pomerium/pomerium.ts'

/** What `gatehouse import` was told beside the files. */
export interface Told {
  /** Arguments of the other program. */
  readonly args: readonly string[]
  /** The service of a Compose file. Absent: the one that runs the other program. */
  readonly service: string | undefined
  /** The origin at which browsers reach the gateway, when the files do not contain it. */
  readonly url: string | undefined
}

/** A program whose configuration can be translated. */
export interface Program {
  /** @throws {SyntaxError} quotes no value */
  readonly translate: (texts: readonly GivenText[], told: Told) => Translated
  /** What else may configure the program. */
  readonly elsewhere: string
}

/** The programs whose configurations can be translated, by the name in `gatehouse import`. */
export const programs = {
  'oauth2-proxy': {
    translate: (texts, { args, service, url }) => translateOauth2Proxy(readOptionsOf(texts, args, service), url),
    elsewhere: 'the flags (after --) and the OAUTH2_PROXY_ variables of oauth2-proxy',
  },
  mod_auth_openidc: {
    translate: (texts, { args, url }) => translateApache(texts, args, url),
    elsewhere: 'all files of Apache that it includes, and -D NAME (after --)',
  },
  pomerium: {
    translate: (texts, { url }) => translatePomerium(texts, url),
    elsewhere: 'the settings in environment variables of Pomerium (as lines of YAML), and all files of routes',
  },
  'traefik-forward-auth': {
    translate: (texts, { args, service, url }) =>
      translateTraefik(readProgramOptions(texts, args, service, traefikDialect), url),
    elsewhere: 'the flags (after --) and the variables of traefik-forward-auth',
  },
  vouch: {
    translate: (texts, { args, service, url }) =>
      translateVouch(readProgramOptions(texts, args, service, vouchDialect), url),
    elsewhere: 'the VOUCH_ and OAUTH_ variables of Vouch Proxy',
  },
} satisfies Readonly<Record<string, Program>>
