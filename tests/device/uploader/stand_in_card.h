// In place of CUDA's runtime, as much of it as copies take: streams that run beside the caller, in
// order, and events. So the threads that share an upload can be tested where there is no card.
#pragma once

namespace tinyvllm {

// From now on so many copies are taken, and the next one is refused; below zero: none is.
void refuse_copy_after(int copies);

}  // namespace tinyvllm
