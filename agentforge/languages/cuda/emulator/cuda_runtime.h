// Everything that is emulated is included before the first line of a kernel source.
#pragma once
