// The Helm charts, as Helm packs and pushes them: an archive, and an OCI artefact.
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { filesBelow, gzip, normalize, tarOf, write } from './archive.mjs'
import { addManifest, annotationsOf, layoutOf } from './oci.mjs'

/** Writes `NAME-chart-VERSION.tgz` and `NAME-chart-VERSION.oci.tar` for each chart. */
export function writeCharts({ identity, source, work, out, epoch, revision }) {
  const stage = join(work, 'charts')
  cpSync(join(source, 'charts'), stage, { recursive: true })
  // What `helm dependency build` does with a chart beside it.
  cpSync(join(source, 'charts', 'gatehouse'), join(stage, 'orders', 'charts', 'gatehouse'), { recursive: true })
  normalize(stage, epoch)
  for (const name of ['gatehouse', 'orders']) {
    const chart = parse(readFileSync(join(stage, name, 'Chart.yaml'), 'utf8'))
    const content = gzip(tarOf(stage, filesBelow(join(stage, name), stage), epoch), epoch)
    const layout = join(work, 'chart-layouts', name)
    const manifest = addManifest(layout, {
      config: { mediaType: 'application/vnd.cncf.helm.config.v1+json', content: chart },
      layer: { mediaType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip', content },
      annotations: annotationsOf(identity, { title: name, description: chart.description, epoch, revision }),
    })
    const file = join(out, `${name}-chart-${identity.version}`)
    write(`${file}.tgz`, content)
    write(`${file}.oci.tar`, layoutOf(layout, manifest, identity.version, epoch))
  }
}
