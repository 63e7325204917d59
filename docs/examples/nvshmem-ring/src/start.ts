import { Device } from '@shoal/driver'
import { bootstrap, type Job } from '@shoal/launch'
import { Session, UniqueId } from '@shoal/nvshmem'

/** One PE's part of the job. */
export interface Pe {
  readonly job: Job
  readonly device: Device
  readonly session: Session
}

/** Finds the other ranks and starts NVSHMEM with them, one PE a rank. */
export async function startPe(): Promise<Pe> {
  const job = await bootstrap()
  const device = Device.get(job.deviceOrdinal)
  const id = UniqueId.fromBytes(await job.share('nvshmem', () => UniqueId.create().toBytes()))
  const { rank, worldSize, lost: signal } = job
  // When a PE is lost, NVSHMEM cannot go on: with this signal what waits for it rejects.
  const session = await Session.init({ device, rank, worldSize, id, signal, timeout: 60_000 })
  if (rank === 0) {
    console.log(`${device.name}${device.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'}, ${worldSize} PEs`)
  }
  return { job, device, session }
}
