"""Memory of CUDA devices that Node.js and Python use together, without a copy.

`receive` opens what `sendMemory` of Shoal sent, and `send` sends what its `receiveMemory` takes. What comes is an object with
`__cuda_array_interface__` and `__dlpack__`, which CuPy, PyTorch and Numba take as an array. Needs Python and the CUDA driver.
"""

from ._array import DeviceArray, allocate
from ._cuda import CudaError, Event
from ._exchange import receive, send
from ._socket import DescriptorSocket

__all__ = ["CudaError", "DescriptorSocket", "DeviceArray", "Event", "allocate", "receive", "send"]
