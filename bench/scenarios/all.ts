import { bursts } from './bursts.ts'
import { monday, startInContainer } from './half-processor.ts'
import { idle } from './idle.ts'
import { logoutTokens, logoutTokensOfMany } from './logout-tokens.ts'
import { misses } from './misses.ts'
import { pageLoads } from './page-loads.ts'
import { pauses } from './pauses.ts'
import {
  handshakes,
  hotPath,
  http2,
  largeBody,
  largeUpload,
  manyConnections,
  manySessions,
  mediumBody,
  settings,
  tls,
  uploads,
} from './requests.ts'
import { sameRate } from './same-rate.ts'
import type { Scenario } from './scenario.ts'
import { sidecars } from './sidecars.ts'
import { signIns } from './sign-ins.ts'
import { startUp } from './start-up.ts'
import { sustained } from './sustained.ts'
import { idleWebSockets, messages } from './websockets.ts'
import { workers } from './workers.ts'

/** The scenarios that the targets refer to. They run unless others are named. */
export const forTargets: readonly Scenario[] = [
  hotPath,
  sameRate,
  tls,
  handshakes,
  http2,
  largeBody,
  largeUpload,
  messages,
  misses,
  signIns,
  logoutTokens,
  startUp,
  idle,
  pageLoads,
  startInContainer,
  pauses,
  monday,
  workers,
]

export const further: readonly Scenario[] = [
  mediumBody,
  manyConnections,
  manySessions,
  uploads,
  settings,
  logoutTokensOfMany,
  idleWebSockets,
  sidecars,
  sustained,
  bursts,
]
