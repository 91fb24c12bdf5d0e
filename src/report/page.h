// A report as one HTML file: styles inside, no scripts, nothing from the network, legible in light
// and dark and on paper. Built block by block, or from a whole document.
//
//   Page page("tinyvllm profile");
//   page.add(Heading{"Kernels"}).add(table).add(Figure{to_svg(chart)}).raw("<p>…</p>");
//   write_text_file(path, page.html());
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "report/document.h"

namespace tinyvllm {

class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}
  Page(std::string title, const Document& document) : title_(std::move(title)) {
    for (const Block& block : document) add(block);
  }

  Page& add(const Block& block);
  Page& raw(std::string_view html);  // already HTML
  std::string html() const;

 private:
  std::string title_;
  std::string body_;
};

std::string html_escape(std::string_view text);  // for text and for attributes

// The whole file or an error that names it; "-" is stdout.
Status write_text_file(const std::string& path, std::string_view text);

}  // namespace tinyvllm
