// Requests that follow each response at once: the hot path and variations of it.
import { getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { issueCertificates } from '../../test/support/certificates.ts'
import { gatehouse, isExtra } from '../contenders/gatehouse.ts'
import { measureInTurn, usualLoad, type Load, type Measured, type Round, type Watch } from '../measure.ts'
import { firstProcessorTime, roundsTable } from '../report.ts'
import { figureOf } from '../rounds.ts'
import { type Stand, type StandOptions, trustOnly } from '../stand.ts'
import type { Bench, Scenario } from './scenario.ts'

const kib = 1024

export const hotPath: Scenario = {
  name: 'hot-path',
  title: '1 KiB, 32 connections, one person signed in',
  async run(bench) {
    const stands = await standAll(bench)
    bench.print('The header fields of real traffic, thirteen of a request and ten of a response:')
    const usual = await measureAll(bench, stands, usualLoad)
    record(bench, usual, 'cpu', 'cpu')
    record(bench, usual, 'rate', 'requestsPerSecond')
    record(bench, usual, 'memory', 'memory')
    const few = await measureInTurn(bench.bed, stands, { ...usualLoad, fields: 'few' }, bench.plan)
    bench.print(`With few header fields, CPU µs/request: ${firstProcessorTime(few)}.`)
  },
}

export const largeBody: Scenario = {
  name: 'large-body',
  title: 'A body of 1 MiB, 8 connections',
  async run(bench) {
    const load = { ...usualLoad, bodyBytes: 1024 * kib, connections: 8 }
    record(bench, await measureAll(bench, await standAll(withRedis(bench)), load), 'cpu download', 'cpu')
  },
}

export const largeUpload: Scenario = {
  name: 'large-upload',
  title: '`POST` of 1 MiB, with a response of 1 KiB, 8 connections',
  async run(bench) {
    const load = { ...usualLoad, uploadBytes: 1024 * kib, connections: 8 }
    record(bench, await measureAll(bench, await standAll(withRedis(bench)), load), 'cpu upload', 'cpu')
  },
}

export const mediumBody: Scenario = {
  name: 'medium-body',
  title: 'A body of 100 KiB, 32 connections',
  run: async (bench) => void (await measureAll(bench, await standAll(bench), { ...usualLoad, bodyBytes: 100 * kib })),
}

export const manyConnections: Scenario = {
  name: 'connections',
  title: '1 KiB, 256 connections',
  run: async (bench) => void (await measureAll(bench, await standAll(bench), { ...usualLoad, connections: 256 })),
}

export const uploads: Scenario = {
  name: 'uploads',
  title: '`POST`, with a response of 1 KiB, 32 connections',
  async run(bench) {
    const stands = await standAll(bench)
    for (const size of [1, 100]) {
      bench.print(`${size} KiB:`)
      await measureAll(bench, stands, { ...usualLoad, uploadBytes: size * kib })
    }
  },
}

export const manySessions: Scenario = {
  name: 'sessions',
  title: '1 KiB, 32 connections, 10,000 sessions that take turns',
  run: async (bench) =>
    void (await measureAll(bench, await standAll(bench, { people: 10_000 }, 'many-sessions'), usualLoad)),
}

export const settings: Scenario = {
  name: 'settings',
  title: 'Settings of an upstream, 1 KiB, 32 connections',
  async run(bench) {
    const stands: Stand[] = [await bench.stand(gatehouse('redis'))]
    for (const extra of ['cookies', 'signed', 'pages', 'rewrite'].filter(isExtra))
      stands.push(await bench.stand(gatehouse('redis', extra), { changesFields: true }))
    await measureAll(bench, stands, usualLoad)
  },
}

export const tls: Scenario = {
  name: 'tls',
  title: '1 KiB, 32 connections that are kept, TLS 1.3 in front',
  run: (bench) => overTls(bench, 'tls', 'tls', usualLoad),
}

export const handshakes: Scenario = {
  name: 'handshakes',
  title: 'A full handshake of TLS 1.3 and one request for each connection, 32 at a time',
  run: (bench) => overTls(bench, 'handshakes', 'tls', { ...usualLoad, reconnects: true }),
}

export const http2: Scenario = {
  name: 'http2',
  title: 'HTTP/2 over TLS 1.3: 1 KiB, 4 connections with 8 streams each',
  run: (bench) => overTls(bench, 'http2', 'http2', { ...usualLoad, connections: 4, streams: 8 }),
}

async function overTls(bench: Bench, name: string, ability: 'tls' | 'http2', load: Load): Promise<void> {
  const { server } = issueCertificates()
  const usual = getGlobalDispatcher()
  trustOnly(server)
  try {
    const stands = await standAll(withRedis(bench), { tls: server }, ability)
    record(bench, await measureAll(bench, stands, load), `cpu ${name}`, 'cpu')
  } finally {
    setGlobalDispatcher(usual)
  }
}

/** The selected contenders; only those with the ability, if one is given. */
export async function standAll(
  bench: Bench,
  options?: StandOptions,
  ability?: 'tls' | 'http2' | 'websockets' | 'many-sessions' | 'sign-in',
): Promise<Stand[]> {
  const stands: Stand[] = []
  for (const contender of bench.contenders.values()) {
    const isAble = ability === 'sign-in' ? contender.signsIn : ability === undefined || contender.can.has(ability)
    if (isAble) stands.push(await bench.stand(contender, options))
  }
  return stands
}

/**
 * Without a contender that also takes part with its sessions in Redis: the hot path shows what each
 * place of the sessions costs.
 */
export function withRedis(bench: Bench): Bench {
  const { contenders } = bench
  const redisOf = (name: string) => `${name.slice(0, name.lastIndexOf('-'))}-redis`
  const rest = [...contenders].filter(([name]) => redisOf(name) === name || !contenders.has(redisOf(name)))
  return { ...bench, contenders: new Map(rest) }
}

/** Measures rounds in turn and prints their table. */
export async function measureAll(
  { bed, plan, print }: Bench,
  stands: readonly Stand[],
  load: Load,
  watch?: Watch,
): Promise<Map<Stand, Measured>> {
  const measured = await measureInTurn(bed, stands, load, plan, watch)
  print(roundsTable(measured))
  return measured
}

/** Keeps a figure of each contender for the targets. */
export function record(
  bench: Pick<Bench, 'facts'>,
  measured: ReadonlyMap<Stand, Measured>,
  fact: string,
  figure: keyof Round,
): void {
  for (const [{ contender }, { rounds }] of measured)
    bench.facts.set(
      `${fact} ${contender.name}`,
      figureOf(rounds, (round) => round[figure]),
    )
}
