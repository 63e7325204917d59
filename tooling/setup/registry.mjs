// A registry of npm packages in memory, to rehearse publishing and installing without a network.
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'

/** The token that a publisher must send. */
const token = 'rehearsal'

/** Starts a registry on this machine. `publisher` holds the environment variables of a publisher. */
export async function startRegistry() {
  const documents = new Map()
  const tarballs = new Map()
  const server = createServer(async (request, response) => {
    const answer = (status, body) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(Buffer.isBuffer(body) ? body : JSON.stringify(body))
    }
    const path = decodeURIComponent(request.url.slice(base.length))
    if (request.method === 'PUT') {
      if (request.headers.authorization !== `Bearer ${token}`) return answer(401, { error: 'who are you?' })
      return answer(...publish(JSON.parse(Buffer.concat(await request.toArray()).toString())))
    }
    const found = documents.get(path) ?? tarballs.get(path)
    return found === undefined ? answer(404, { error: 'not found' }) : answer(200, found)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // npm caches what an address returned, so each registry has new addresses.
  const base = `/${randomUUID()}/`
  const host = `127.0.0.1:${server.address().port}${base}`
  const url = `http://${host}`

  /** Receives what npm sends: manifests of new versions, and their tarballs. */
  function publish({ name, versions, 'dist-tags': tags, _attachments: attachments }) {
    const document = documents.get(name) ?? { name, 'dist-tags': {}, versions: {}, time: {} }
    for (const [version, manifest] of Object.entries(versions)) {
      if (document.versions[version]) return [403, { error: `cannot publish over ${name}@${version}` }]
      const [file, { data }] = Object.entries(attachments)[0]
      const tarball = Buffer.from(data, 'base64')
      const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
      if (manifest.dist.integrity !== integrity) return [400, { error: `${name}: damaged on the way` }]
      const place = `${name}/-/${file.split('/').at(-1)}`
      tarballs.set(place, tarball)
      document.versions[version] = { ...manifest, dist: { ...manifest.dist, tarball: `${url}${place}` } }
      // Some package managers refuse versions that are less than a few days old.
      document.time[version] = new Date(Date.now() - 30 * 24 * 60 * 60 * 1000).toISOString()
    }
    Object.assign(document['dist-tags'], tags)
    documents.set(name, document)
    return [201, { ok: true }]
  }

  return {
    url,
    npmrc: `@shoal:registry=${url}\n`,
    publisher: { [`npm_config_//${host}:_authToken`]: token },
    names: () => [...documents.keys()],
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
