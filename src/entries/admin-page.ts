/** What packages/admin-page uses of the gateway. Nothing else of `src` is for it. */
export { type MergedSample, type Quantiles, sampleMs, slotOf } from '../admin/samples.ts'
export type { TimelineEvent } from '../admin/timeline.ts'
export type {
  OrderOutcome,
  Overview,
  ProviderView,
  SessionColumn,
  SessionQuery,
  SessionsView,
  SessionView,
} from '../admin/view.ts'
export type { PagesConfig } from '../config/model/pages.ts'
export type { Response } from '../http/response.ts'
export { innerMetrics } from '../observe/process-metrics.ts'
export { breakable, escape, htmlResponse, sourceHash } from '../pages/page.ts'
export { styleOf } from '../pages/style.ts'
export type { EndedBy } from '../session/live/endings.ts'
