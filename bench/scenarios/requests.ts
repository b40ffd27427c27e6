// Requests that follow each response at once: the hot path and variations of it.
import { readFileSync } from 'node:fs'
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { issueCertificates } from '../../test/support/certificates.ts'
import { measureInTurn, medianOf, usualLoad, type Load, type Round } from '../measure.ts'
import { roundsTable } from '../report.ts'
import type { Stand, StandOptions } from '../stand.ts'
import type { Bench, Scenario } from './scenario.ts'

const kib = 1024

export const hotPath: Scenario = {
  name: 'hot-path',
  title: '1 KiB, 32 connections, one person signed in',
  async run(bench) {
    const measured = await measureAll(bench, await standAll(bench), usualLoad)
    for (const [{ contender }, rounds] of measured) {
      bench.facts.set(`cpu ${contender.name}`, medianOf(rounds, 'cpu'))
      bench.facts.set(`rate ${contender.name}`, medianOf(rounds, 'requestsPerSecond'))
      bench.facts.set(`memory ${contender.name}`, medianOf(rounds, 'memory'))
    }
  },
}

export const largeBody: Scenario = {
  name: 'large-body',
  title: 'A body of 1 MiB, 8 connections',
  async run(bench) {
    const measured = await measureAll(bench, await standAll(bench), {
      ...usualLoad,
      bodyBytes: 1024 * kib,
      connections: 8,
    })
    for (const [{ contender }, rounds] of measured)
      bench.facts.set(`cpu 1 MiB ${contender.name}`, medianOf(rounds, 'cpu'))
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
  title: 'POST, responded with 1 KiB',
  async run(bench) {
    const stands = await standAll(bench)
    for (const [size, uploadBytes, connections] of [
      ['1 KiB', kib, 32],
      ['100 KiB', 100 * kib, 32],
      ['1 MiB', 1024 * kib, 8],
    ] as const) {
      bench.print(`${size}, ${connections} connections:\n`)
      await measureAll(bench, stands, { ...usualLoad, uploadBytes, connections })
    }
  },
}

export const manySessions: Scenario = {
  name: 'sessions',
  title: '1 KiB, 32 connections, 10,000 sessions that take turns',
  async run(bench) {
    const people = 10_000
    bench.print(`${people} people sign in at each of those that know sign-in, which takes minutes.\n`)
    await measureAll(bench, await standAll(bench, { people }), usualLoad)
  },
}

export const tls: Scenario = {
  name: 'tls',
  title: '1 KiB, 32 connections that are kept, TLS 1.3 in front',
  async run(bench) {
    const over: (() => unknown)[] = []
    const { server } = issueCertificates()
    const usual = getGlobalDispatcher()
    // The browsers that sign in trust the certificate. The measured clients accept any certificate.
    setGlobalDispatcher(new Agent({ connect: { ca: readFileSync(server.ca) } }))
    over.push(() => setGlobalDispatcher(usual))
    await measureAll(bench, await standAll(bench, { tls: server }, 'tls'), usualLoad)
    for (const tidy of over) await tidy()
  },
}

/** The selected contenders; only those with the ability, if one is given. */
export async function standAll(bench: Bench, options?: StandOptions, ability?: 'tls' | 'websockets'): Promise<Stand[]> {
  const stands: Stand[] = []
  for (const contender of bench.contenders.values())
    if (ability === undefined || contender.can.has(ability)) stands.push(await bench.stand(contender, options))
  return stands
}

/** Measures rounds in turn and prints their table. */
export async function measureAll(
  { bed, plan, print }: Bench,
  stands: readonly Stand[],
  load: Load,
): Promise<Map<Stand, readonly Round[]>> {
  const measured = await measureInTurn(bed, stands, load, plan)
  print(`${roundsTable(measured)}\n`)
  return measured
}
