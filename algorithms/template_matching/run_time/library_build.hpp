// Which build of a loaded library this is. The version of NVRTC alone does not tell, since patch
// releases have the same number. This header needs nothing of CUDA to compile.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <cstring>
#include <string>

namespace xcorr::template_matching {

// "build 65be0d..." with the build id from the linker; without one, "build of 109338064 bytes", the
// size of its file; "" if neither is known.
inline std::string library_build(void* library) {
  link_map* map = nullptr;
  if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return "";
  struct Search {
    const link_map* map;
    std::string id;
  } search{map, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* loaded, std::size_t, void* data) {
        auto* const of = static_cast<Search*>(data);
        if (loaded->dlpi_addr != of->map->l_addr ||
            std::strcmp(loaded->dlpi_name, of->map->l_name) != 0) {
          return 0;
        }
        constexpr char kDigits[] = "0123456789abcdef";
        for (int i = 0; i < loaded->dlpi_phnum; ++i) {
          const auto& segment = loaded->dlpi_phdr[i];
          if (segment.p_type != PT_NOTE) continue;
          const std::size_t align = segment.p_align == 8 ? 8 : 4;
          const auto padded = [&](std::size_t bytes) {
            return (bytes + align - 1) / align * align;
          };
          const char* const notes =
              reinterpret_cast<const char*>(loaded->dlpi_addr + segment.p_vaddr);
          std::size_t at = 0;
          ElfW(Nhdr) note;
          while (at + sizeof note <= segment.p_memsz) {
            std::memcpy(&note, notes + at, sizeof note);
            const std::size_t name = at + sizeof note, content = name + padded(note.n_namesz);
            at = content + padded(note.n_descsz);
            if (at > segment.p_memsz) break;
            const bool gnu = note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0;
            if (!gnu || note.n_type != NT_GNU_BUILD_ID) continue;
            for (std::size_t k = 0; k < note.n_descsz; ++k) {
              const auto byte = static_cast<unsigned char>(notes[content + k]);
              of->id += {kDigits[byte / 16], kDigits[byte % 16]};
            }
            return 1;
          }
        }
        return 1;
      },
      &search);
  if (!search.id.empty()) return "build " + search.id;
  struct stat file;
  if (stat(map->l_name, &file) != 0) return "";
  return "build of " + std::to_string(file.st_size) + " bytes";
}

}  // namespace xcorr::template_matching
