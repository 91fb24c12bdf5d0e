#pragma once

namespace tinyvllm::ops {

// What becomes of the products of a linear: y = Wx, y += Wx, or y = gate(Gx) · Ux.
enum class Epilogue { kStore, kAdd, kSiluGate, kGeluGate };

constexpr bool is_gate(Epilogue e) { return e == Epilogue::kSiluGate || e == Epilogue::kGeluGate; }

}  // namespace tinyvllm::ops
