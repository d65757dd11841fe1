// What of it works on a CPU is included before the first line of a source.
#pragma once
