// One PE of a job that MPI starts. It puts into the next PE, and checks what the previous PE has put.
import { Session } from '@shoal/nvshmem'

const device = Number(process.env.OMPI_COMM_WORLD_LOCAL_RANK)
const session = await Session.init({ device, launcher: 'mpi', timeout: 40_000 })
const { pe, peCount } = session
const elements = 1001
const target = await session.allocate('f64', elements, { zeroed: true })
await session.barrierAll()
const values = (owner) => Float64Array.from({ length: elements }, (_, index) => owner * 1e6 + index)
await session.put(target, values(pe), { pe: (pe + 1) % peCount })
await session.barrierAll()
const expected = values((pe - 1 + peCount) % peCount)
const isRight = (await target.toArray()).every((value, index) => value === expected[index])
console.log(`PE ${pe} of ${peCount}: ${elements} elements from the PE to the left, ${isRight ? 'right' : 'WRONG'}`)
if (!isRight) process.exitCode = 1
await target.dispose()
await session.finalize()
