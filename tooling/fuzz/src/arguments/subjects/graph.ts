import { image } from './cuda.js'
import { memoryDescriptor } from './entries.js'
import type { Subject } from './subject.js'

/** Returns the subject of the graphs of `driver` or of `runtime`. */
export async function graphSubject(name: 'driver' | 'runtime', makers: Subject['values']): Promise<Subject> {
  const driver = await import('@shoal/driver')
  const base = name === 'driver' ? await import('@shoal/driver/graph') : await import('@shoal/runtime/graph')
  const graphs = await import('@shoal/driver/graph')
  const device = driver.Device.get(0)
  const stream = (): import('@shoal/driver').Stream => device.createStream({ nonBlocking: true })
  const memory = (): import('@shoal/driver').DeviceBuffer<'f32'> => driver.DeviceBuffer.allocate(device, 'f32', 4)
  const fill = (): import('@shoal/driver/graph').NodeDescription => graphs.fillNode(memory(), 1)
  // There is one graph and one executable graph, because the methods of either take nodes of the same graph.
  let graph = graphs.Graph.create(device)
  let exec: import('@shoal/driver/graph').GraphExec
  let nodes: import('@shoal/driver/graph').GraphNode[] = []
  const renew = (): void => {
    graph = graphs.Graph.create(device)
    nodes = [graph.add(fill()), graph.add(fill())]
    exec = graph.instantiate()
  }
  renew()
  const current = (): typeof graph => {
    if (graph.disposed || exec.disposed || graph.nodes.length < 2) renew()
    return graph
  }
  const node = (index: number) => (): unknown => {
    current()
    return nodes[index]
  }
  const kernel = (): import('@shoal/driver').Kernel<['f32', 'ptr', 'ptr', 'i32']> =>
    driver.Module.loadSync(device, image).kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
  const { ExternalSemaphore } = await import('@shoal/driver/external')
  const semaphore = (): unknown =>
    ExternalSemaphore.import(device, { type: 'timeline-fd', handle: memoryDescriptor(8) })
  // A user object that the graph retains, so that the graph can release it.
  const userObject = (): unknown => graphs.UserObject.create(() => undefined).retainBy(current(), 2)
  const other = graphs.Graph.create(driver.Device.get(1))
  const elsewhere = other.add(graphs.emptyNode())
  return {
    module: base,
    instances: {
      Graph: current,
      GraphExec: () => {
        current()
        return exec
      },
      GraphNode: node(0),
      NodeDescription: fill,
      UserObject: userObject,
    },
    values: {
      ...makers,
      DeviceOrContext: () => device,
      '#owner': () => device,
      '#device': () => device,
      '#stream': stream,
      '#fn': () => () => undefined,
      '#description': fill,
      '#node': node(0),
      'withCaptureMode#mode': () => 'relaxed',
      'setCaptureDependencies#nodes': () => [node(0)()],
      '#from': node(0),
      '#to': node(1),
      '#original': node(0),
      'Graph.findInClone#original': node(0),
      '#graph': () => graphs.Graph.create(device),
      'GraphExec.update#graph': current,
      'UserObject.retainBy#graph': current,
      'UserObject.releaseBy#graph': current,
      '#memory': memory,
      'Graph.free#memory': () => current().allocate('f32', 4).memory,
      '#objects': memory,
      '#path': () => '/dev/full/none',
      '#target': memory,
      '#source': memory,
      '#buffer': memory,
      '#value': () => 1,
      '#event': () => device.createEvent(),
      '#operations': () => [{ operation: 'write', memory: memory().slice(0, 1), value: 1 }],
      'signalSemaphoresNode#operations': () => [{ semaphore: semaphore() }],
      'waitSemaphoresNode#operations': () => [{ semaphore: semaphore() }],
      '#enabled': () => true,
      '#kernel': kernel,
      '#config': () => ({ grid: 1, block: 32 }),
      '#args': () => [2, memory(), memory(), 4],
      'Graph.addConditional#options': () => ({ type: 'if' }),
      '#type': () => 'if',
    },
    foreignObjects: {
      'a node of another graph': () => elsewhere,
      'a graph of another device': () => other,
      'a stream of another device': () => driver.Device.get(1).createStream(),
    },
  }
}
